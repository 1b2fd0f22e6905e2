/**
 * Keeps an exclusive pool: lends each borrower one warm member for himself, and takes it back when he leaves, however he
 * leaves. Like the keeper of a shared pool an orchestration, so what is lent to whom is in its history.
 *
 * LENDER-1 A member is lent to one borrower at a time, and only while somebody holds it.
 * LENDER-2 Borrowers are served in the order they came.
 * LENDER-3 A borrower has his member until he leaves. If its worker dies the member is claimed anew and stays his; if it cannot
 *    be had any more he is told, and the pool gets another for the others.
 */

import { z } from "zod";
import { Borrower, lenderOrchestration, Name, PoolSignal, PoolSpec } from "../../../schemas/index.ts";
import {
  type App,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { lend, takeBack } from "../../../shared/replay/index.ts";
import { parseDuration } from "../../../shared/runtime/index.ts";
import { PoolAttention } from "./pool-attention.ts";
import { isGone, lookEveryMs, type Member, PoolMembers, spareIdle, stateOf } from "./pool-members.ts";
import { PoolUsers } from "./pool-users.ts";

const LenderInput = z.object({
  poolId: Name,
  pool: PoolSpec,
  users: z.array(z.string()).default([]),
  left: z.array(z.string()).default([]),
  /** Those who have no member yet, in order. */
  waiting: z.array(z.object({ user: z.string(), borrower: Borrower })).default([]),
  members: z
    .array(z.object({ id: z.string(), lentTo: z.string().optional(), freeSince: z.number() }))
    .default([]),
  made: z.number().default(0),
  lendings: z.number().default(0),
});
type LenderInput = z.infer<typeof LenderInput>;

/** A history of this many signals is long enough. */
const signalsPerExecution = 300;

export const poolLender = (app: App) =>
  defineOrchestration(lenderOrchestration, {
    input: LenderInput,
    // As with the keeper: a pool goes when its users go.
    run: (ctx, input) => ctx.uncancellable((own) => new Lender(own, app, input).run()),
  });

class Lender {
  readonly #ctx: OrchestrationContext;
  readonly #input: LenderInput;
  readonly #users: PoolUsers;
  readonly #members: PoolMembers;
  readonly #attention: PoolAttention;
  readonly #waiting: Map<string, Borrower>;
  /** By member. */
  readonly #lentTo = new Map<string, string>();
  readonly #freeSince = new Map<string, number>();
  readonly #idleMs: number;
  #lendings: number;
  /** A member came or could not be had since the last look. */
  #changed = false;

  constructor(ctx: OrchestrationContext, app: App, input: LenderInput) {
    const { poolId, pool, made } = input;
    this.#ctx = ctx;
    this.#input = input;
    this.#users = new PoolUsers(input, pool, ctx.now());
    this.#attention = new PoolAttention(ctx);
    this.#waiting = new Map(input.waiting.map(({ user, borrower }) => [user, borrower]));
    this.#lendings = input.lendings;
    this.#idleMs = parseDuration(
      app.sessions.get(pool.type)?.options.idleTimeout ?? spareIdle,
      "idleTimeout",
    );
    const change = () => {
      this.#changed = true;
      this.#attention.wake();
    };
    this.#members = new PoolMembers({
      ...{ ctx, app, poolId, pool, made },
      onOpened: change,
      onFailed: change,
    });
  }

  async run(): Promise<void> {
    for (const { id, lentTo, freeSince } of this.#input.members) {
      this.#members.open(id, false);
      this.#freeSince.set(id, freeSince);
      if (lentTo !== undefined) this.#lentTo.set(id, lentTo);
    }
    for (let heard = 0; heard < signalsPerExecution; heard++) {
      this.#changed = false;
      await this.#adjust();
      this.#lendOut();
      this.#tellPeople();
      const signal = PoolSignal.safeParse(await this.#next());
      if (signal.success) this.#hear(signal.data);
    }
    const { poolId, pool } = this.#input;
    this.#ctx.continueAsNew({
      poolId,
      pool: { ...pool, ...this.#users.size },
      ...this.#users.known,
      waiting: [...this.#waiting].map(([user, borrower]) => ({ user, borrower })),
      members: this.#members.list.map(({ id }) => ({
        id,
        lentTo: this.#lentTo.get(id),
        freeSince: this.#freeSince.get(id) ?? this.#ctx.now(),
      })),
      made: this.#members.made,
      lendings: this.#lendings,
    });
  }

  #next(): Promise<unknown> {
    return this.#changed ? Promise.resolve() : this.#attention.next(this.#silenceMs());
  }

  #silenceMs(): number | undefined {
    const now = this.#ctx.now();
    const { list, retryAt } = this.#members;
    if (this.#users.count === 0 && list.length === 0) return undefined;
    const leftMs = this.#users.leftMs(now);
    const spare = this.#spare()[0];
    const idleMs = spare && this.#idleMs > 0 ? this.#freeSinceOf(spare) + this.#idleMs - now : lookEveryMs;
    const times = [lookEveryMs, retryAt - now, leftMs ?? 0, idleMs];
    return Math.min(...times.filter((ms) => ms > 0));
  }

  #hear(signal: PoolSignal): void {
    switch (signal.kind) {
      case "join": {
        const { user, borrower } = signal;
        const known = this.#users.has(user);
        const joined = this.#users.join(signal, this.#users.count === 0 && this.#members.list.length === 0);
        if (joined && !known && borrower) this.#waiting.set(user, borrower);
        return;
      }
      case "leave":
        this.#users.leave(signal.user, this.#ctx.now());
        this.#waiting.delete(signal.user);
        return this.#return(signal.user);
      case "grow":
        return; // who waits is known here
    }
  }

  #return(user: string): void {
    for (const [id, lentTo] of this.#lentTo) {
      if (lentTo !== user) continue;
      this.#lentTo.delete(id);
      this.#freeSince.set(id, this.#ctx.now());
      takeBack(this.#ctx, id);
    }
  }

  /** Forgets what is gone, lets go what nobody needs, asks for as many as there are borrowers. */
  async #adjust(): Promise<void> {
    const now = this.#ctx.now();
    const abandoned = this.#users.leftMs(now) === 0;
    for (const member of [...this.#members.list]) {
      // One that is still being opened can be closed when it is there, and not before.
      if (isGone(member) || (abandoned && member.session !== undefined)) await this.#letGo(member);
    }
    for (const member of this.#spare()) {
      if (this.#idleMs > 0 && now - this.#freeSinceOf(member) >= this.#idleMs) await this.#letGo(member);
    }
    if (this.#users.count === 0 || now < this.#members.retryAt) return;
    const wanted = Math.min(
      this.#users.size.max,
      Math.max(this.#minimum, this.#lentTo.size + this.#waiting.size),
    );
    while (this.#members.list.length < wanted) this.#members.add(false);
  }

  get #minimum(): number {
    return Math.max(1, this.#users.size.min);
  }

  /** Free ones beyond the minimum, the longest idle first. */
  #spare(): Member[] {
    const { list } = this.#members;
    const free = list.filter(({ id, session }) => session !== undefined && !this.#lentTo.has(id));
    free.sort((a, b) => this.#freeSinceOf(a) - this.#freeSinceOf(b));
    return free.slice(0, Math.max(0, list.length - this.#minimum));
  }

  #freeSinceOf({ id }: Member): number {
    return this.#freeSince.get(id) ?? this.#ctx.now();
  }

  async #letGo(member: Member): Promise<void> {
    this.#lentTo.delete(member.id); // LENDER-3: the end of the session told him
    this.#freeSince.delete(member.id);
    await this.#members.letGo(member);
  }

  #lendOut(): void {
    const free = this.#members.list.filter(({ id, session }) => session && !this.#lentTo.has(id));
    for (const member of free)
      if (!this.#freeSince.has(member.id)) this.#freeSince.set(member.id, this.#ctx.now());
    // The one used last: those idle for long may go.
    free.sort((a, b) => this.#freeSinceOf(b) - this.#freeSinceOf(a));
    const ready = free.filter((member) => stateOf(member) === "active"); // LENDER-1
    for (const [user, to] of this.#waiting) {
      const member = ready.shift();
      if (!member) break;
      this.#waiting.delete(user);
      this.#lentTo.set(member.id, user);
      const { poolId } = this.#input;
      lend(this.#ctx, member.id, { poolId, number: ++this.#lendings, to });
    }
    if (this.#waiting.size === 0) return;
    // Lost while it was free: it comes back by itself, and must not be overlooked then.
    for (const member of free) if (stateOf(member) !== "active") this.#members.whenHeld(member);
  }

  #tellPeople(): void {
    this.#attention.tell({
      users: this.#users.count,
      members: this.#members.list.length,
      lent: this.#lentTo.size,
      waiting: this.#waiting.size,
      error: this.#members.lastError,
    });
  }
}
