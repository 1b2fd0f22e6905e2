import { useState } from "preact/hooks";
import { identify, post } from "../api.ts";
import { Problem } from "../parts/basics.tsx";
import { Field } from "../parts/dialog.tsx";

export function LoginPage() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>();
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
        <p class="muted">This gateway asks for a token. It is one of those in GATEWAY_TOKENS.</p>
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
        <button type="submit" class="button primary">
          Log in
        </button>
      </form>
    </main>
  );
}
