/** Starts instances for as long as it is let, sends them what they wait for, and checks what each came to. */
import { sleep, systemClock } from "../../shared/runtime/index.ts";
import type { Client, InstanceHandle } from "../../shared/sdk/index.ts";

const programs: Record<string, { size: number; result: number }> = {
  sequence: { size: 5, result: 5 },
  family: { size: 3, result: 6 },
  pooled: { size: 4, result: 4 },
  signalled: { size: 4, result: 4 },
  renewed: { size: 4, result: 4 },
  long: { size: 20, result: 20 },
};

/** Beyond so many under way none is started. */
const mostAtOnce = 40;

export class Load {
  readonly #client: Client;
  readonly #stopping = new AbortController();
  readonly #wrong: string[] = [];
  readonly #open = new Set<Promise<void>>();
  readonly counts = new Map<string, number>();
  #n = 0;
  #running: Promise<void> | undefined;

  constructor(client: Client) {
    this.#client = client;
  }

  begin(everyMs: number): void {
    this.#running = this.#keepStarting(everyMs);
  }

  get open(): number {
    return this.#open.size;
  }

  get ended(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  get wrong(): readonly string[] {
    return this.#wrong;
  }

  /** No more; resolves when all have ended. */
  async finish(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await Promise.all(this.#open);
  }

  async #keepStarting(everyMs: number): Promise<void> {
    const { signal } = this.#stopping;
    const names = Object.keys(programs);
    while (!signal.aborted) {
      const name = names[this.#n % names.length] ?? "sequence";
      const id = `${name}-${this.#n++}`;
      const one: Promise<void> = this.#live(name, id)
        .catch((error: unknown) => void this.#wrong.push(`${id}: ${String(error)}`))
        .finally(() => this.#open.delete(one));
      this.#open.add(one);
      await sleep(systemClock, everyMs, signal);
      while (this.#open.size >= mostAtOnce && !signal.aborted) await sleep(systemClock, 50, signal);
    }
  }

  async #live(name: string, id: string): Promise<void> {
    const { size = 1, result: expected = 0 } = programs[name] ?? {};
    const handle: InstanceHandle = await patiently(() => this.#client.start(name, size, { id }));
    if (name === "signalled") {
      for (let i = 0; i < size; i++) await patiently(() => this.#client.signal(id, "tick", i));
    }
    const result = await handle.result({ timeout: "15m" });
    if (result !== expected) this.#wrong.push(`${id}: ${JSON.stringify(result)} instead of ${expected}`);
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
}

async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (tries >= 10) throw error;
      await sleep(systemClock, 200);
    }
  }
}
