import type { CodeGroup } from "./code-group.ts";

export const http: CodeGroup = {
  title: "HTTP",
  about: "codes that only the gateway answers with",
  codes: {
    bad_token: { cause: "The token at the log-in page is not known.", remedy: "Use one of GATEWAY_TOKENS." },
    unauthorized: {
      cause: "The gateway has tokens, and the request had none that it knows.",
      remedy: "Send `Authorization: Bearer <token>`, or log in.",
    },
    forbidden: {
      cause: "The role of this token may not do this.",
      remedy: "Use a token of the role that the message names.",
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
    not_found: { cause: "What the path names is not known here.", remedy: "Check the id." },
    no_such_route: { cause: "The gateway has no such route.", remedy: "/api/openapi.json lists them." },
    not_json: {
      cause: "The body is not JSON, or its content type is another.",
      remedy: "Send `Content-Type: application/json`; `{}` where there is nothing to say.",
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
      cause: "The gateway failed in a way nobody foresaw.",
      remedy: "Its log has the reason under `request_failed`.",
    },
    gateway_open: {
      cause: "The gateway would listen to the network without tokens.",
      remedy: "Set GATEWAY_TOKENS=admin:<secret> (or `generate`), or listen on 127.0.0.1.",
    },
  },
};
