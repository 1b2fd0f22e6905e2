/** What the end of the code means for its instance. */
import { Name, type Payload } from "../../../schemas/index.ts";
import { validate } from "../../definitions/index.ts";
import { Fault, isCancelled, toFailure } from "../../errors/index.ts";
import type { IssuedCommand, Runner } from "./runner.ts";
import { toPayload } from "./to-payload.ts";

export type Ending = { kind: "returned"; value: unknown } | { kind: "threw"; error: unknown };

/** Thrown by `ctx.continueAsNew`. */
export class ContinueAsNew {
  readonly input: { payload: Payload; bytes: number };
  constructor(input: { payload: Payload; bytes: number }) {
    this.input = input;
  }
}

/** A fault where the code is not over but wrong. */
export function endingCommand(runner: Runner, ending: Ending): IssuedCommand | Fault {
  return ending.kind === "threw" ? afterError(runner, ending.error) : afterValue(runner, ending.value);
}

function afterError(
  { definition, signals, state, rootScope }: Runner,
  error: unknown,
): IssuedCommand | Fault {
  if (error instanceof Fault && error.kind === "nondeterminism") return error;
  if (error instanceof ContinueAsNew) {
    const { payload: input, bytes: payloadBytes } = error.input;
    const unread = signals.unread().map((signal) => ({ ...signal, name: Name.parse(signal.name) }));
    const name = Name.parse(definition.name);
    return { event: { kind: "instance.continued", name, input, signals: unread }, payloadBytes };
  }
  if (isCancelled(error) && state.cancelRequested) {
    return { event: { kind: "instance.cancelled", reason: rootScope.reason }, payloadBytes: 0 };
  }
  return failed(error);
}

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
