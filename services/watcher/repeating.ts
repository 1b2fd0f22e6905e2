import { announceFault, type Runtime, type Service, sleep } from "../../shared/runtime/index.ts";

/**
 * Repeats an action, never twice at a time; a failure is announced, and the next round follows all the same.
 */
export class Repeating implements Service {
  readonly #runtime: Runtime;
  readonly #where: string;
  readonly #everyMs: () => number;
  readonly #act: () => Promise<void>;
  #state: { kind: "idle" } | { kind: "running"; stop: () => void; ended: Promise<void> } = { kind: "idle" };

  constructor(runtime: Runtime, where: string, everyMs: number | (() => number), act: () => Promise<void>) {
    this.#runtime = runtime;
    this.#where = where;
    this.#everyMs = typeof everyMs === "number" ? () => everyMs : everyMs;
    this.#act = act;
  }

  /** Resolves when the first round is over. */
  async start(): Promise<void> {
    if (this.#state.kind === "running") return;
    const stopped = new AbortController();
    const first = this.#round();
    const ended = first.then(() => this.#loop(stopped.signal));
    this.#state = { kind: "running", stop: () => stopped.abort(), ended };
    await first;
  }

  async stop(): Promise<void> {
    if (this.#state.kind === "idle") return;
    const { stop, ended } = this.#state;
    stop();
    await ended;
    this.#state = { kind: "idle" };
  }

  async #loop(signal: AbortSignal): Promise<void> {
    while ((await this.#pause(signal)) === "elapsed") await this.#round();
  }

  #pause(signal: AbortSignal): Promise<"elapsed" | "aborted"> {
    return sleep(this.#runtime.clock, this.#everyMs(), signal);
  }

  async #round(): Promise<void> {
    try {
      await this.#act();
    } catch (error) {
      announceFault(this.#runtime, this.#where, error, { otherwise: "failed" });
    }
  }
}
