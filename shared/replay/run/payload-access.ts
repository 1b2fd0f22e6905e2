/** Where payloads that are too big for a commit live, as far as a turn needs to know. */
import {
  type HistoryEvent,
  moveAway,
  type NewEvent,
  type Payload,
  payloadsOf,
} from "../../../schemas/index.ts";
import type { Values } from "./runner.ts";
import { jsonText } from "./to-payload.ts";

export interface PayloadAccess {
  readonly inlineBytes: number;
  /** Moves a value, given as JSON, out of the way and returns the reference to it. */
  store(json: string, owner: string): Promise<Payload>;
  fetch(payload: Payload): Promise<unknown>;
}

const inline: Values = (payload) => ("json" in payload ? payload.json : undefined);

/** Everything the code may look at in these events; awaits only where something big is among it. */
export function valuesOf(events: readonly HistoryEvent[], access: PayloadAccess): Values | Promise<Values> {
  const blobs = events.flatMap(payloadsOf).filter((payload) => "blob" in payload);
  if (blobs.length === 0) return inline;
  return (async () => {
    const values = new Map<string, unknown>();
    for (const payload of blobs) {
      if ("blob" in payload) values.set(payload.blob.key, await access.fetch(payload));
    }
    return (payload) => ("json" in payload ? payload.json : values.get(payload.blob.key));
  })();
}

/** Replaces the payloads of a command by references. */
export const offload = (event: NewEvent, access: PayloadAccess, owner: string): Promise<NewEvent> =>
  moveAway(event, async (payload) =>
    "blob" in payload || payload.json === undefined
      ? payload
      : await access.store(jsonText(payload.json), owner),
  );
