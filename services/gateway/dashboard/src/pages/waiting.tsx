import type { ApiError } from "../api.ts";
import { Problem } from "../parts/basics.tsx";

/** Shown until the gateway has data; disappears by itself. */
export function WaitingPage({ why }: { why: ApiError }) {
  return (
    <main class="login" id="main" aria-busy="true">
      <div class="card">
        <h1>
          <img src="/icon.svg" alt="" width={28} height={28} /> Holdfast
        </h1>
        <Problem error={why} />
        <p class="muted">Nothing is lost: orchestrations go on when it is back, and this page by itself.</p>
      </div>
    </main>
  );
}
