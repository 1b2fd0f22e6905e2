/**
 * The ids of signals and updates that an instance received in its earlier executions. An execution carries
 * the latest of them in memory; when a caller's own id is not among those, all of them are read from the
 * history, so that each is received once, for ever (Q2).
 */
import type { HistoryEvent } from "../../../schemas/index.ts";
import type { HistoryMark, HistoryStore } from "../../../shared/history/index.ts";
import type { InboxMessage, InstanceState } from "../../../shared/replay/index.ts";

export class EarlierIds {
  readonly #history: Pick<HistoryStore, "readOn">;
  #ids = new Set<string>();
  #mark: HistoryMark | undefined;
  /** The execution up to which the history was read. */
  #execution = 0;

  constructor(history: Pick<HistoryStore, "readOn">) {
    this.#history = history;
  }

  /** Reads nothing while the instance carries all ids it ever received. */
  async has(message: InboxMessage, state: Readonly<InstanceState>): Promise<boolean> {
    const id = state.forgetsIds ? idOf(message) : undefined;
    if (id === undefined) return false;
    if (this.#execution !== state.execution) await this.#read(state);
    return this.#ids.has(id);
  }

  async #read({ instanceId, execution }: Readonly<InstanceState>): Promise<void> {
    const read = await this.#history.readOn(instanceId, this.#mark);
    if (!read) return;
    if (read.anew) this.#ids = new Set();
    for (const { events } of read.commits) {
      for (const event of events) {
        const id = idIn(event);
        if (id !== undefined) this.#ids.add(id);
      }
    }
    this.#mark = read.mark;
    this.#execution = execution;
  }
}

/** Ids that the client made up are sent again at once or never: the latest ones are enough. */
function idOf(message: InboxMessage): string | undefined {
  if (message.kind === "update") return message.ofCaller ? updateId(message.updateId) : undefined;
  if (message.kind !== "signal" || !message.ofCaller || message.messageId === undefined) return undefined;
  return signalId(message.messageId);
}

function idIn(event: HistoryEvent): string | undefined {
  if (event.kind === "update.accepted") return updateId(event.updateId);
  return event.kind === "signal.received" && event.messageId !== undefined
    ? signalId(event.messageId)
    : undefined;
}

const signalId = (id: string): string => `signal ${id}`;
const updateId = (id: string): string => `update ${id}`;
