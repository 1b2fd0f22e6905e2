/** Operations that are cancelled together. */
export class Scope {
  readonly parent: Scope | undefined;
  /** Not cancelled with its parent. */
  readonly shielded: boolean;
  /** Made when somebody asks for the signal: most scopes are never asked. */
  #abort: AbortController | undefined;
  /** Made when needed, as the signal: every waiting instance has a scope. */
  #children: Set<Scope> | undefined;
  #members: Set<() => void> | undefined;
  #cancelled: { reason: string | undefined } | undefined;

  constructor(parent: Scope | undefined, shielded: boolean) {
    this.parent = parent;
    this.shielded = shielded;
    if (!parent) return;
    parent.#children ??= new Set();
    parent.#children.add(this);
    if (parent.#cancelled && !shielded) this.#cancelled = parent.#cancelled;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#cancelled) this.#abort.abort(this.#cancelled.reason);
    return this.#abort.signal;
  }

  get cancelled(): boolean {
    return this.#cancelled !== undefined;
  }

  get reason(): string | undefined {
    return this.#cancelled?.reason;
  }

  /** Runs `onCancel` when the scope is cancelled. Returns how to leave it. */
  join(onCancel: () => void): () => void {
    this.#members ??= new Set();
    this.#members.add(onCancel);
    return () => {
      this.#members?.delete(onCancel);
    };
  }

  cancel(reason?: string): void {
    if (this.#cancelled) return;
    this.#cancelled = { reason };
    this.#abort?.abort(reason);
    for (const member of [...(this.#members ?? [])]) member();
    for (const child of this.#children ?? []) if (!child.shielded) child.cancel(reason);
  }
}
