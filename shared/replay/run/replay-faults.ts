/** The ways code can break the rules of replay, each with advice what to do (T6). */
import type { HistoryEvent, NewEvent } from "../../../schemas/index.ts";
import { describeCommand } from "../../../schemas/index.ts";
import { Fault, HoldfastError } from "../../errors/index.ts";

const awaitHint = "Await only what ctx returns; put I/O and timers into activities.";

export const nonDurableCall = (orchestration: string, what: string): Fault =>
  new Fault("nondeterminism", {
    code: "non_durable_call",
    message: `${what} was called inside orchestration "${orchestration}"`,
    hint: "Use ctx.sleep for time and an activity for anything that touches the outside.",
  });

export const nonDurableAwait = (orchestration: string): Fault =>
  new Fault("nondeterminism", {
    code: "non_durable_await",
    message: `orchestration "${orchestration}" waits for something that is not durable`,
    hint: awaitHint,
  });

export const outsideTurn = (orchestration: string, event: NewEvent): Fault =>
  new Fault("nondeterminism", {
    code: "non_durable_await",
    message: `orchestration "${orchestration}" issued ${describeCommand(event)} after awaiting something that is not durable`,
    hint: awaitHint,
  });

/** An error that the code may catch: it may do without, or end and be started again later. */
export const needsNewerFleet = (what: string, older: string): HoldfastError =>
  new HoldfastError({
    code: "needs_newer_fleet",
    message: `${what} is recorded in a way that ${older} cannot read: upgrade it, or wait until it has gone`,
  });

/** Undefined on either side: no further command in this turn. */
export function mismatch(recorded: HistoryEvent | undefined, issued: NewEvent | undefined): Fault {
  const was = recorded ? describeCommand(recorded) : "nothing more in this turn";
  const is = issued ? describeCommand(issued) : "nothing more in this turn";
  return new Fault("nondeterminism", {
    code: "nondeterminism",
    message: `history has ${was}${recorded ? ` (event ${recorded.id})` : ""}, the code issued ${is}`,
    hint: "Deploy code that follows the recorded history, or guard the change with ctx.patched.",
    details: { eventId: recorded?.id, recorded: was, issued: is },
  });
}
