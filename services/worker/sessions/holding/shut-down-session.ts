/**
 * Ends a session's code and state: running code is aborted and waited for, then `shutdown` runs once
 * (HOLD-2).
 */

import { messageOf } from "../../../../shared/errors/index.ts";
import { type Clock, within } from "../../../../shared/runtime/index.ts";
import type { RunHooks } from "../../hosts/index.ts";
import type { Calls } from "../calls/calls.ts";
import type { CheckpointSaver } from "./checkpoint-saver.ts";
import type { PlacedState } from "./placed-state.ts";

interface Wait {
  hooks: RunHooks;
  /** Bounded wait for aborted code, and again for `shutdown`. */
  closeMs: number;
  clock: Clock;
}

interface ShutDownSession extends Wait {
  calls: Calls;
  reason: Error;
  /** How long running code may finish undisturbed. */
  finishMs: number;
  /** Set if a clean state is to be saved. */
  save: CheckpointSaver | undefined;
}

export async function shutDownSession(
  placed: PlacedState,
  { calls, reason, finishMs, save, ...wait }: ShutDownSession,
): Promise<void> {
  if (finishMs > 0) {
    calls.finish();
    await within(finishMs, calls.over(), wait.clock);
  }
  const finished = calls.running === 0;
  calls.end(reason);
  const over = calls.over();
  if ((await within(wait.closeMs, over, wait.clock)) === "late") {
    // HOLD-2: the code may still use the state. The state is shut down when the code ends after all.
    void over.then(() => shutDown(placed, wait));
    calls.abandon();
    placed.place.leave({ suspect: true });
    return;
  }
  if (finished && save) await save.save(placed.state, calls.done);
  await shutDown(placed, wait);
  placed.place.leave();
}

/** `init` may still be running; a state that it makes in the end is shut down like any other. */
export async function shutDownUnmade(made: Promise<PlacedState | undefined>, wait: Wait): Promise<void> {
  const cleaned = made.then(async (placed) => {
    if (!placed) return;
    await shutDown(placed, wait);
    placed.place.leave();
  });
  await within(wait.closeMs * 2, cleaned, wait.clock);
}

/** Errors of `shutdown` are ignored, and a host that is gone has no state to shut down. */
export async function shutDown({ state }: PlacedState, { hooks, closeMs, clock }: Wait): Promise<void> {
  const done = state.shutdown(hooks).catch((error: unknown) => {
    hooks.log?.("warn", `shutdown failed: ${messageOf(error)}`, undefined);
  });
  await within(Math.max(closeMs, 1000), done, clock);
}
