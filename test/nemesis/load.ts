/** Users of the installation: each starts instances, sends them what they wait for, and notes the answers. */
import { appendFileSync } from "node:fs";
import { Name } from "../../schemas/index.ts";
import { type Random, sleep, systemClock } from "../../shared/runtime/index.ts";
import { type Client, HoldfastError } from "../../shared/sdk/index.ts";
import type { JournalEntry } from "../../shared/verify/index.ts";

interface Program {
  name: string;
  n: number;
  output: unknown;
  /** What its user does after the start. */
  then?: (user: User, id: string) => Promise<void>;
}

interface User {
  client: Client;
  note: (entry: JournalEntry) => void;
  /** Repeats what may be repeated until it is answered: everything here has an id of its own. */
  surely: <T>(ask: () => Promise<T>) => Promise<T>;
}

const mostAtOnce = 40;

const programs: Program[] = [
  { name: "steps", n: 6, output: 6 },
  { name: "held", n: 6, output: 9 },
  { name: "family", n: 4, output: 10 },
  { name: "generations", n: 5, output: 5 },
  { name: "signalled", n: 4, output: 6, then: sendSignals },
  { name: "pooled", n: 4, output: 4 },
  { name: "large", n: 300_000, output: 900_000 },
  { name: "sleepy", n: 4, output: 4 },
  { name: "updated", n: 3, output: 6, then: sendUpdates },
  { name: "borrowed", n: 3, output: 3 },
  { name: "endless", n: 0, output: undefined, then: cancelSoon },
];

async function sendSignals({ client, note, surely }: User, id: string): Promise<void> {
  for (let value = 0; value < 4; value++) {
    const messageId = `${id}-${value}`;
    await surely(() => client.signal(id, "tick", value, { messageId }));
    note({ kind: "signalled", instanceId: id, name: "tick", sender: "load", messageId, value });
  }
}

async function sendUpdates({ client, note, surely }: User, id: string): Promise<void> {
  for (let by = 1; by <= 3; by++) {
    const updateId = `${id}-${by}`;
    const answer = await surely(() => client.update(id, "add-up", by, { id: updateId, timeout: "10s" }));
    note({ kind: "updated", instanceId: id, updateId, answer });
  }
}

async function cancelSoon({ client, surely }: User, id: string): Promise<void> {
  await sleep(systemClock, 1500);
  await surely(() => client.cancel(id));
}

export class Load {
  readonly #client: Client;
  readonly #journal: string;
  readonly #open = new Map<string, Promise<void>>();
  readonly started = new Map<string, number>();
  /** What a user saw that is not what its program comes to. */
  readonly wrong: string[] = [];

  /** True when the ends are no longer awaited. */
  #isOver = false;

  constructor(client: Client, journal: string) {
    this.#client = client;
    this.#journal = journal;
  }

  get ids(): number {
    return [...this.started.values()].reduce((sum, n) => sum + n, 0);
  }

  /** So many, evenly over the time. Resolves when all are started. */
  async run(instances: number, ms: number, random: Random): Promise<void> {
    const begin = performance.now();
    for (let i = 0; i < instances; i++) {
      const due = begin + (ms * (i + random.next())) / instances;
      await sleep(systemClock, Math.max(0, due - performance.now()));
      while (this.#open.size >= mostAtOnce) await Promise.race(this.#open.values());
      const program = programs[i % programs.length];
      if (program) this.#begin(program, `${program.name}-${i}`);
    }
  }

  /** A schedule whose runs are instances of their own; it is over after so many. */
  async schedule(id: string, limit: number): Promise<void> {
    await this.#surely(() =>
      this.#client.schedules.create(
        id,
        { orchestration: Name.parse("steps"), input: 2, every: "1s", limit },
        { replace: true },
      ),
    );
    this.#count("schedule");
  }

  /** Resolves when everything has come to its end, or when nothing has for so long, with what has not. */
  async ended(withinMs: number): Promise<string[]> {
    for (let left = Number.POSITIVE_INFINITY; this.#open.size > 0 && this.#open.size < left; ) {
      left = this.#open.size;
      const waiting = new AbortController();
      const some = Promise.race([...this.#open.values()]);
      await Promise.race([some, sleep(systemClock, withinMs, waiting.signal)]);
      waiting.abort();
    }
    this.#isOver = true;
    return Promise.all([...this.#open.keys()].map((id) => this.#where(id)));
  }

  /** How far one has come that does not end. */
  async #where(id: string): Promise<string> {
    const found = await this.#client.status(id).catch(String);
    const events = await this.#client.history(id).catch(() => []);
    const last = events.slice(-6).map(({ kind }) => kind);
    return `${id} does not end: ${JSON.stringify(found)}, last events ${last.join(", ")}`;
  }

  #begin(program: Program, id: string): void {
    const one: Promise<void> = this.#live(program, id)
      .catch((error: unknown) => void this.wrong.push(`${id}: ${String(error)}`))
      .finally(() => this.#open.delete(id));
    this.#open.set(id, one);
  }

  async #live({ name, n, output, then }: Program, id: string): Promise<void> {
    const note = (entry: JournalEntry) => this.#note(entry);
    await this.#surely(() => this.#client.start(name, n, { id }));
    this.#count(name);
    note({ kind: "started", instanceId: id, ends: true });
    await then?.({ client: this.#client, note, surely: (ask) => this.#surely(ask) }, id);
    const result = await this.#result(id).then(
      (value) => ({ status: "completed" as const, output: value }),
      (error: unknown) => {
        if (error instanceof HoldfastError && error.code === "cancelled")
          return { status: "cancelled" as const };
        throw error;
      },
    );
    note({ kind: "ended", instanceId: id, ...result });
    const expected = name === "endless" ? { status: "cancelled" } : { status: "completed", output };
    if (JSON.stringify(result) !== JSON.stringify(expected))
      this.wrong.push(`${id} came to ${JSON.stringify(result)} instead of ${JSON.stringify(expected)}`);
  }

  #result(id: string): Promise<unknown> {
    return this.#surely(() => this.#client.result(id, { timeout: "5m", known: true }));
  }

  /** Asks until `ended` has given up: how long the nemesis strikes says nothing about the instance. */
  async #surely<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const isAnswer = error instanceof HoldfastError && answers.includes(error.code);
        if (isAnswer || this.#isOver) throw error;
        await sleep(systemClock, 200);
      }
    }
  }

  #note(entry: JournalEntry): void {
    appendFileSync(this.#journal, `${JSON.stringify(entry)}\n`);
  }

  #count(name: string): void {
    this.started.set(name, (this.started.get(name) ?? 0) + 1);
  }
}

/** Errors that say how an instance ended. */
const answers = ["cancelled", "orchestration_failed"];
