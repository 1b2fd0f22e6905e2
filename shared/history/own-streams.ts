/**
 * Which instances have a stream of their own, asked once for all who want to know at the same time: the server answers
 * a question about a stream that is not there more slowly than it stores a commit. Everybody gets the answer to a
 * question that was sent after they asked (HISTORY-2).
 */
import type { Bus } from "../bus/bus.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { Clock } from "../runtime/index.ts";

/** Of more than these the list is the dearer answer; looked at again after a while. */
const most = 200;
const singlyForMs = 10_000;

export interface OwnStreamsOptions {
  bus: Bus;
  names: Subjects;
  clock: Clock;
}

export class OwnStreams {
  readonly #options: OwnStreamsOptions;
  /** Not sent yet: whoever comes may join. */
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
    this.#sent = asked.catch(() => undefined); // who asked is told; the next one asks anew
    const found = await asked;
    if (found.length > most) this.#singlyUntil = clock.monotonic() + singlyForMs;
    return new Set(found);
  }
}
