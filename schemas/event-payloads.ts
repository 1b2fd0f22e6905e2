import type { HistoryEvent } from "./events.ts";
import type { Payload } from "./payload.ts";

/** Payloads an event carries for the code to see. */
export function payloadsOf(event: HistoryEvent): Payload[] {
  switch (event.kind) {
    case "instance.started":
      return [
        event.input,
        ...(event.carried?.state ? [event.carried.state] : []),
        ...(event.carried?.signals.map((signal) => signal.payload) ?? []),
      ];
    case "activity.completed":
    case "child.completed":
      return [event.output];
    case "signal.received":
      return [event.payload];
    case "update.accepted":
      return [event.input];
    case "side_effect.recorded":
      return [event.value];
    default:
      return [];
  }
}
