/** Where payloads that are too big for a commit live, as far as a turn needs to know. */
import { type HistoryEvent, type NewEvent, type Payload, payloadsOf } from "../../../schemas/index.ts";
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

/** Replaces the payload of a command by a reference. */
export async function offload(event: NewEvent, access: PayloadAccess, owner: string): Promise<NewEvent> {
  const away = async (payload: Payload) =>
    "blob" in payload || payload.json === undefined
      ? payload
      : await access.store(jsonText(payload.json), owner);
  switch (event.kind) {
    case "activity.scheduled":
    case "child.scheduled":
      return { ...event, input: await away(event.input) };
    case "instance.continued": {
      const { input, state } = event;
      return { ...event, input: await away(input), ...(state && { state: await away(state) }) };
    }
    case "instance.completed":
      return { ...event, output: await away(event.output) };
    case "side_effect.recorded":
      return { ...event, value: await away(event.value) };
    case "update.completed":
      return { ...event, answer: await away(event.answer) };
    case "status.set":
      return { ...event, status: await away(event.status) };
    case "session.opened": {
      const { config, options } = event;
      const { rebuild } = options;
      return {
        ...event,
        config: config && (await away(config)),
        options: rebuild
          ? { ...options, rebuild: { ...rebuild, input: await away(rebuild.input) } }
          : options,
      };
    }
    default:
      return event;
  }
}
