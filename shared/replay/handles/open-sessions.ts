/**
 * Sessions as the running code knows them: who waits for one to be held, and what the code did to them in this round
 * that the state will only learn at its end.
 */
import { SparseMap } from "../../runtime/index.ts";

interface Opener {
  resolve(): void;
  reject(error: unknown): void;
}

type Now = { kind: "opened"; type: string; lazy: boolean } | { kind: "closed" };

export class OpenSessions {
  readonly #openers = new SparseMap<string, Set<Opener>>();
  readonly #now = new SparseMap<string, Now>();

  beginRound(): void {
    this.#now.clear();
  }

  now(sessionId: string): Now | undefined {
    return this.#now.get(sessionId);
  }

  openedNow(sessionId: string, type: string, lazy: boolean): void {
    this.#now.set(sessionId, { kind: "opened", type, lazy });
  }

  closedNow(sessionId: string): void {
    this.#now.set(sessionId, { kind: "closed" });
  }

  /** Waits until somebody holds it. Returns how to stop waiting, which tells whether nobody waits any more. */
  wait(sessionId: string, opener: Opener): () => "alone" | "others" {
    const openers = this.#openers.get(sessionId) ?? new Set();
    this.#openers.set(sessionId, openers);
    openers.add(opener);
    return () => {
      openers.delete(opener);
      if (openers.size > 0) return "others";
      this.#openers.delete(sessionId);
      return "alone";
    };
  }

  opened(sessionId: string): void {
    for (const opener of this.#take(sessionId)) opener.resolve();
  }

  failed(sessionId: string, error: () => unknown): void {
    for (const opener of this.#take(sessionId)) opener.reject(error());
  }

  #take(sessionId: string): Iterable<Opener> {
    const openers = this.#openers.get(sessionId) ?? [];
    this.#openers.delete(sessionId);
    return openers;
  }

  awaited(): boolean {
    return this.#openers.size > 0;
  }
}
