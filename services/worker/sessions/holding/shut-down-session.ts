/** The end of a session's code and state: what runs is asked to stop and waited for, then `shutdown`, once (HOLD-2). */
import { within } from "../../../../shared/runtime/index.ts";
import type { RunHooks } from "../../hosts/index.ts";
import type { Calls } from "../calls/calls.ts";
import type { CheckpointSaver } from "./checkpoint-saver.ts";
import type { Housed } from "./housed.ts";

interface Wait {
  hooks: RunHooks;
  /** Bounded wait for aborted code, and again for `shutdown`. */
  closeMs: number;
}

export interface ShutDownSession extends Wait {
  calls: Calls;
  reason: Error;
  /** What runs may finish undisturbed for so long. */
  finishMs: number;
  /** Present where the state is to be saved if it is clean. */
  save: CheckpointSaver | undefined;
}

export async function shutDownSession(
  housed: Housed,
  { calls, reason, finishMs, save, ...wait }: ShutDownSession,
): Promise<void> {
  if (finishMs > 0) {
    calls.finish();
    await within(finishMs, calls.over());
  }
  const finished = calls.running === 0;
  calls.end(reason);
  const over = calls.over();
  if ((await within(wait.closeMs, over)) === "late") {
    // HOLD-2: its code may still touch the state. When it ends after all, the state goes too.
    void over.then(() => shutDown(housed, wait));
    calls.abandon();
    housed.place.leave({ suspect: true });
    return;
  }
  if (finished && save) await save.save(housed.state, calls.done);
  await shutDown(housed, wait);
  housed.place.leave();
}

/** Its `init` may still be running; what it makes in the end is shut down like any other. */
export async function shutDownUnmade(made: Promise<Housed | undefined>, wait: Wait): Promise<void> {
  const cleaned = made.then(async (housed) => {
    if (!housed) return;
    await shutDown(housed, wait);
    housed.place.leave();
  });
  await within(wait.closeMs * 2, cleaned);
}

/** Its own errors concern nobody any more, and a host that is gone has no state to shut down. */
export async function shutDown({ state }: Housed, { hooks, closeMs }: Wait): Promise<void> {
  const done = state.shutdown(hooks).catch((error: unknown) => {
    hooks.log?.(
      "warn",
      `shutdown failed: ${error instanceof Error ? error.message : String(error)}`,
      undefined,
    );
  });
  await within(Math.max(closeMs, 1000), done);
}
