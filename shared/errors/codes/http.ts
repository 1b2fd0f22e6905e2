import type { CodeGroup } from "./code-group.ts";

export const http: CodeGroup = {
  title: "HTTP",
  about: "codes that only the gateway answers with",
  codes: {
    bad_token: {
      cause: "The token at the log-in page is not known.",
      remedy: "Use one of GATEWAY_TOKENS, or one that an administrator issued and that has not expired.",
    },
    unauthorized: {
      cause: "The gateway has tokens, and the request had none that it knows.",
      remedy: "Send `Authorization: Bearer <token>`, or log in.",
    },
    forbidden: {
      cause: "The role of this token may not do this.",
      remedy: "Use a token of the role that the message names.",
    },
    out_of_scope: {
      cause: "The API token was issued for other operations or other orchestrations.",
      remedy: "Use another token, or have one issued whose scope includes this.",
    },
    payloads_hidden: {
      cause: "The answer is a user's value, and this caller may see only shapes.",
      remedy:
        "GATEWAY_PAYLOADS sets from which role on values are shown; `+payloads` behind a role grants it.",
    },
    history_too_large: {
      cause: "The history is larger than one request may read.",
      remedy:
        "`holdfast history <id> --export` reads it from NATS; GATEWAY_MAX_HISTORY_BYTES sets the limit.",
    },
    too_many_tokens: { cause: "A thousand API tokens are issued.", remedy: "Revoke some." },
    tokens_not_asked_for: {
      cause: "An API token was requested from a gateway without log-in.",
      remedy: "Set GATEWAY_TOKENS or GATEWAY_OIDC_ISSUER first.",
    },
    token_file_unwritable: {
      cause: "The file with the link of the generated token cannot be written.",
      remedy: "Name another with GATEWAY_TOKEN_FILE, or set tokens of your own.",
    },
    oidc_unreachable: {
      cause: "The log-in provider did not answer the gateway.",
      remedy: "Check GATEWAY_OIDC_ISSUER, and that the gateway can reach it.",
    },
    oidc_refused: {
      cause:
        "The log-in provider's answer was not accepted: wrong signature, issuer, audience, nonce or code.",
      remedy: "Log in again; compare the provider's client with GATEWAY_OIDC_….",
    },
    oidc_login_unknown: {
      cause: "The log-in was not begun in this browser, or more than ten minutes ago.",
      remedy: "Log in again.",
    },
    oidc_no_role: {
      cause: "The person is known to the provider, but none of the person's groups has a role here.",
      remedy: "Add a group to GATEWAY_OIDC_ROLES.",
    },
    foreign_origin: {
      cause: "A page of another origin tried to change something.",
      remedy: "Go through a server of your own; the gateway trusts its own pages only.",
    },
    host_not_allowed: {
      cause: "The gateway was asked under a host name it does not know.",
      remedy: "Use its address or localhost, or add the name to GATEWAY_ALLOWED_HOSTS.",
    },
    read_only: {
      cause: "The gateway was started with GATEWAY_READ_ONLY=true.",
      remedy: "Use another gateway for changes.",
    },
    not_found: { cause: "The gateway knows nothing of the name in the path.", remedy: "Check the id." },
    no_such_route: { cause: "The gateway has no such route.", remedy: "/api/openapi.json lists them." },
    not_json: {
      cause: "The body is not JSON, or its content type is another.",
      remedy: "Send `Content-Type: application/json`; `{}` if the request has no fields.",
    },
    too_many_requests: {
      cause: "More requests a second than GATEWAY_RATE_LIMIT allows.",
      remedy: "Wait as long as `Retry-After` says.",
    },
    too_many_listeners: {
      cause: "More live pages are open than one gateway serves.",
      remedy: "Close some, or start another gateway.",
    },
    bus_away: {
      cause: "The gateway cannot reach NATS.",
      remedy: "It keeps trying; check that nats-server runs and that NATS_URL points at it.",
    },
    internal: {
      cause: "The gateway failed unexpectedly.",
      remedy: "Its log has the reason under `request_failed`.",
    },
    gateway_open: {
      cause: "The gateway would listen to the network without tokens.",
      remedy: "Set GATEWAY_TOKENS=admin:<secret> (or `generate`), or listen on 127.0.0.1.",
    },
  },
};
