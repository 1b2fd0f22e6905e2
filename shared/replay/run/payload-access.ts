/** Access to payloads that are too big for a commit, as far as a turn needs it. */
import {
  type HistoryEvent,
  moveAway,
  type NewEvent,
  type Payload,
  payloadsOf,
} from "../../../schemas/index.ts";
import type { Values } from "./round.ts";
import { jsonText } from "./to-payload.ts";

export interface PayloadAccess {
  readonly inlineBytes: number;
  /** Stores a value, given as JSON, and returns the reference to it. */
  store(json: string, owner: string): Promise<Payload>;
  fetch(payload: Payload): Promise<unknown>;
}

export const inlineValue: Values = (payload) => ("json" in payload ? payload.json : undefined);

/** Every value in these events that the code may read; awaits only if a big one is among them. */
export function valuesOf(events: readonly HistoryEvent[], access: PayloadAccess): Values | Promise<Values> {
  const isBlob = (payload: Payload): boolean => "blob" in payload;
  if (!events.some((event) => payloadsOf(event).some(isBlob))) return inlineValue;
  const blobs = events.flatMap(payloadsOf).filter(isBlob);
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
