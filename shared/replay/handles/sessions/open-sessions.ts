/**
 * Sessions as the running code knows them: the openers that wait for a holder, and the code's acts of this
 * round, which the state learns only at its end.
 */
import { SparseMap } from "../../../runtime/index.ts";

interface Opener {
  resolve(): void;
  reject(error: unknown): void;
}

type Now = { kind: "opened"; type: string; lazy: boolean } | { kind: "closed" };

export class OpenSessions {
  readonly #openers = new SparseMap<string, Set<Opener>>();
  readonly #now = new SparseMap<string, Now>();
  readonly #metadata = new SparseMap<string, Readonly<Record<string, string>>>();
  readonly #keepers = new SparseMap<string, () => void>();

  beginRound(): void {
    this.#now.clear();
    this.#metadata.clear();
  }

  now(sessionId: string): Now | undefined {
    return this.#now.get(sessionId);
  }

  openedNow(sessionId: string, type: string, lazy: boolean): void {
    this.#now.set(sessionId, { kind: "opened", type, lazy });
  }

  /** The metadata after the code's changes in this round; undefined if it made none. */
  metadata(sessionId: string): Readonly<Record<string, string>> | undefined {
    return this.#metadata.get(sessionId);
  }

  metadataNow(sessionId: string, metadata: Readonly<Record<string, string>>): void {
    this.#metadata.set(sessionId, metadata);
  }

  closedNow(sessionId: string): void {
    this.#now.set(sessionId, { kind: "closed" });
  }

  /**
   * Waits until a worker holds the session. The returned function stops waiting and says whether other
   * openers still wait.
   */
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
    for (const opener of this.#popOpeners(sessionId)) opener.resolve();
  }

  failed(sessionId: string, error: () => unknown): void {
    for (const opener of this.#popOpeners(sessionId)) opener.reject(error());
  }

  /**
   * Calls `tell` once, when the session is parked, failed or lost for good, so that a keeper can replace it.
   */
  whenOver(sessionId: string, tell: () => void): void {
    this.#keepers.set(sessionId, tell);
  }

  over(sessionId: string): void {
    const tell = this.#keepers.get(sessionId);
    this.#keepers.delete(sessionId);
    tell?.();
  }

  #popOpeners(sessionId: string): Iterable<Opener> {
    const openers = this.#openers.get(sessionId) ?? [];
    this.#openers.delete(sessionId);
    return openers;
  }

  awaited(): boolean {
    return this.#openers.size > 0;
  }
}
