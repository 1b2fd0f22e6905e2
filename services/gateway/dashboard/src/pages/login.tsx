import { useEffect, useState } from "preact/hooks";
import { get, identify, post } from "../api.ts";
import { Problem } from "../parts/basics.tsx";
import { Field } from "../parts/dialog.tsx";

/** Why a log-in at the provider led back here. */
const refusals: Readonly<Record<string, string>> = {
  oidc_no_role:
    "You are known, but none of your groups has a role here. Ask an administrator of this gateway.",
  oidc_login_unknown: "This log-in was not begun in this browser, or too long ago. Log in again.",
  oidc_unreachable: "The log-in provider did not answer the gateway. Try again, or ask an administrator.",
  too_many_requests: "Too many log-ins failed. Wait a minute.",
};

export function LoginPage() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>();
  const [ways, setWays] = useState({ token: true, oidc: false });
  const refusal = new URLSearchParams(location.search).get("login");
  useEffect(() => {
    get<typeof ways>("/api/login-ways").then(setWays, () => undefined);
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      await post("/api/login", { token: token.trim() });
      await identify();
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <main class="login" id="main">
      <form class="card" onSubmit={submit}>
        <h1>
          <img src="/icon.svg" alt="" width={28} height={28} /> Holdfast
        </h1>
        {refusal !== null && (
          <p role="alert">
            {refusals[refusal] ?? "The log-in was refused; the gateway's log has the reason."}
          </p>
        )}
        {ways.oidc && (
          <a class="button primary" href="/api/oidc/login">
            Log in with your organisation
          </a>
        )}
        <p class="muted">
          {ways.oidc ? "Or use a token." : "This gateway asks for a token."} It is one of those in
          GATEWAY_TOKENS, in the file that the gateway's log names, or one that an administrator issued.
        </p>
        <Field label="Token">
          <input
            type="password"
            autoComplete="current-password"
            value={token}
            required
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </Field>
        {error !== undefined && <Problem error={error} />}
        <button type="submit" class={ways.oidc ? "button" : "button primary"}>
          Log in
        </button>
      </form>
    </main>
  );
}
