export interface ScopeMember {
  cancel(): void;
}

/** Operations that are cancelled together. */
export class Scope {
  readonly parent: Scope | undefined;
  /** Not cancelled with its parent. */
  readonly shielded: boolean;
  /** Made when code asks for the signal: most scopes are never asked. */
  #abort: AbortController | undefined;
  /** Made when needed, like the signal: every waiting instance has a scope. */
  #children: Set<Scope> | undefined;
  #members: Set<ScopeMember> | undefined;
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

  /** The member is cancelled with the scope from now on. */
  join(member: ScopeMember): void {
    this.#members ??= new Set();
    this.#members.add(member);
  }

  leave(member: ScopeMember): void {
    this.#members?.delete(member);
  }

  cancel(reason?: string): void {
    if (this.#cancelled) return;
    this.#cancelled = { reason };
    this.#abort?.abort(reason);
    for (const member of [...(this.#members ?? [])]) member.cancel();
    for (const child of this.#children ?? []) if (!child.shielded) child.cancel(reason);
  }
}
