/** The part of an AbortSignal that the engine needs. */
export interface Aborting {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Makes its AbortController when user code first asks for the signal: most runs end before that. */
export class LazyAbort implements Aborting {
  #controller: AbortController | undefined;
  #aborted: { reason: unknown } | undefined;
  #listeners: Set<() => void> | undefined;
  #over: AbortController | undefined;
  #ended = false;

  get aborted(): boolean {
    return this.#aborted !== undefined;
  }

  get reason(): unknown {
    return this.#aborted?.reason;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = { reason };
    const listeners = this.#listeners;
    this.#listeners = undefined;
    for (const listener of listeners ?? []) listener();
    this.#controller?.abort(reason);
  }

  /** Also aborts when the run has ended in any way: listeners that the run added must not outlive it. */
  get over(): AbortSignal {
    this.#over ??= new AbortController();
    if (this.#ended) this.#over.abort();
    return AbortSignal.any([this.signal, this.#over.signal]);
  }

  end(): void {
    this.#ended = true;
    this.#over?.abort();
  }
}
