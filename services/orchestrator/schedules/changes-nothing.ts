/**
 * Recognises commands that reach the keeper of a schedule after its end and would have changed nothing before
 * it. They need no dead letter: a client that got no answer creates the same schedule again, perhaps just
 * after its last run.
 */
import { isDeepStrictEqual } from "node:util";
import {
  type Payload,
  ScheduleCommand,
  ScheduleInput,
  scheduleOrchestration,
  scheduleSignal,
} from "../../../schemas/index.ts";
import type { InboxMessage, InstanceState } from "../../../shared/replay/index.ts";

export function changesNothing(
  state: Readonly<InstanceState>,
  message: Extract<InboxMessage, { kind: "signal" }>,
): boolean {
  if (state.name !== scheduleOrchestration || message.name !== scheduleSignal) return false;
  const command = ScheduleCommand.safeParse(inlineValue(message.payload)).data;
  switch (command?.kind) {
    case "ended":
    case "delete":
      return true;
    case "update": {
      const input = ScheduleInput.safeParse(inlineValue(state.input)).data;
      return input !== undefined && !input.deleted && isDeepStrictEqual(input.spec, command.spec);
    }
    default:
      return false;
  }
}

/** Undefined for a value in the object store: it is not fetched for this. */
const inlineValue = (payload: Payload | undefined): unknown =>
  payload !== undefined && "json" in payload ? payload.json : undefined;
