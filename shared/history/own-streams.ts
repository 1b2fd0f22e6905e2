/**
 * Finds out which instances have a stream of their own. Callers that ask at the same time share one request, because
 * the server answers a question about a missing stream more slowly than it stores a commit. Every caller gets
 * the answer to a request that was sent after its call (HISTORY-2).
 */
import type { Bus, Subjects } from "../bus/index.ts";
import type { Clock } from "../runtime/index.ts";

/** With more streams the list costs more than one request per stream; the list is tried again after a while. */
const mostListed = 200;
const singlyForMs = 10_000;

interface OwnStreamsOptions {
  bus: Bus;
  names: Subjects;
  clock: Clock;
}

export class OwnStreams {
  readonly #options: OwnStreamsOptions;
  /** The next request, not sent yet: further callers may join it. */
  #next: Promise<ReadonlySet<string>> | undefined;
  #sent: Promise<unknown> = Promise.resolve();
  #singlyUntil = 0;

  constructor(options: OwnStreamsOptions) {
    this.#options = options;
  }

  async has(instanceId: string): Promise<boolean> {
    const { bus, names, clock } = this.#options;
    const stream = names.ownHistoryStream(instanceId);
    if (clock.monotonic() < this.#singlyUntil) return (await bus.streamInfo(stream)) !== undefined;
    this.#next ??= this.#ask();
    return (await this.#next).has(stream);
  }

  async #ask(): Promise<ReadonlySet<string>> {
    const { bus, names, clock } = this.#options;
    await this.#sent;
    this.#next = undefined;
    const asked = bus.streamNames(names.ownHistories);
    this.#sent = asked.catch(() => undefined); // the callers get the error; the next caller asks anew
    const found = await asked;
    if (found.length > mostListed) this.#singlyUntil = clock.monotonic() + singlyForMs;
    return new Set(found);
  }
}
