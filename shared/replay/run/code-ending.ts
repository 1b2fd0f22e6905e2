/** Turns the end of the code into the command that ends its execution. */
import { Name, type NewEvent, type Payload } from "../../../schemas/index.ts";
import { validate } from "../../definitions/index.ts";
import { Fault, isCancelled, toFailure } from "../../errors/index.ts";
import type { IssuedCommand } from "./round.ts";
import type { Runner } from "./runner.ts";
import { toPayload } from "./to-payload.ts";

export type CodeEnding = { kind: "returned"; value: unknown } | { kind: "threw"; error: unknown };

interface Snapshot {
  payload: Payload;
  bytes: number;
}

/** Thrown by `ctx.continueAsNew`. */
export class ContinueAsNew {
  readonly input: Snapshot;
  /** The snapshot of `ctx.state`, if there is one. */
  readonly state: Snapshot | undefined;
  constructor(input: Snapshot, state: Snapshot | undefined) {
    this.input = input;
    this.state = state;
  }
}

/** Returns a fault if the code has not ended but broken a rule. */
export function endingCommand(runner: Runner, ending: CodeEnding): IssuedCommand | Fault {
  return ending.kind === "threw" ? afterError(runner, ending.error) : afterValue(runner, ending.value);
}

/** Carries the unread signals and `ctx.state` over to the next execution. */
export function continued(
  { definition, signals }: Runner,
  input: Snapshot,
  state: Snapshot | undefined,
): IssuedCommand & { event: NewEvent<"instance.continued"> } {
  const unread = signals.unread().map((signal) => ({ ...signal, name: Name.parse(signal.name) }));
  const name = Name.parse(definition.name);
  const carried = state && { state: state.payload };
  return {
    event: { kind: "instance.continued", name, input: input.payload, signals: unread, ...carried },
    payloadBytes: Math.max(input.bytes, state?.bytes ?? 0),
  };
}

function afterError(runner: Runner, error: unknown): IssuedCommand | Fault {
  const { state, rootScope } = runner;
  if (error instanceof Fault && error.kind === "nondeterminism") return error;
  if (error instanceof ContinueAsNew) return continued(runner, error.input, error.state);
  if (state.cancelRequested && isOfCancel(error, state.rules)) {
    return { event: { kind: "instance.cancelled", reason: rootScope.reason }, payloadBytes: 0 };
  }
  return failed(error);
}

/** From rule 2 on also what `Promise.any` throws when what it waited for was cancelled. */
const isOfCancel = (error: unknown, rules: number): boolean =>
  isCancelled(error) || (rules >= 2 && error instanceof AggregateError && error.errors.some(isCancelled));

function afterValue({ definition }: Runner, value: unknown): IssuedCommand {
  try {
    validate(definition.output, value, "invalid_output", `output of "${definition.name}"`);
    const { payload, bytes } = toPayload(value);
    return { event: { kind: "instance.completed", output: payload }, payloadBytes: bytes };
  } catch (error) {
    return failed(error);
  }
}

const failed = (error: unknown): IssuedCommand => ({
  event: { kind: "instance.failed", error: toFailure(error) },
  payloadBytes: 0,
});
