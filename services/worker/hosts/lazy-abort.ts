/** An AbortController made when somebody asks for the signal: most calls are over before anybody does. */
export class LazyAbort {
  #controller: AbortController | undefined;
  #aborted: { reason: unknown } | undefined;
  #over: AbortController | undefined;
  #ended = false;

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#aborted ??= { reason };
    this.#controller?.abort(reason);
  }

  /** Aborts when the run is over too, however it ended: what it started by listening must not outlive it. */
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
