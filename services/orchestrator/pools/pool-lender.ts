/**
 * Keeps an exclusive pool: lends each borrower one warm member of its own, and takes it back when the
 * borrower leaves, for whatever reason. Like the keeper of a shared pool it is an orchestration, so its
 * history records which member is lent to which borrower.
 *
 * LENDER-1 A member is lent to one borrower at a time, and only while a worker holds it.
 * LENDER-2 Borrowers are served in the order in which they came.
 * LENDER-3 A borrower keeps its member until it leaves. If the member's worker dies, the member is claimed
 *    anew and stays with its borrower; if the member cannot be claimed any more, the borrower gets its end,
 *    and the pool opens another member for the others.
 */

import { z } from "zod";
import {
  Borrower,
  lenderOrchestration,
  Name,
  PoolOrders,
  PoolSignal,
  PoolSpec,
} from "../../../schemas/index.ts";
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
  /** Borrowers without a member, in order of arrival. */
  waiting: z.array(z.object({ user: z.string(), borrower: Borrower })).default([]),
  members: z
    .array(z.object({ id: z.string(), lentTo: z.string().optional(), freeSince: z.number() }))
    .default([]),
  made: z.number().default(0),
  lendings: z.number().default(0),
  orders: PoolOrders.optional(),
});
type LenderInput = z.infer<typeof LenderInput>;

/** The lender continues as new after this many signals, to keep its history short. */
const signalsPerExecution = 300;

export const poolLender = (app: App) =>
  defineOrchestration(lenderOrchestration, {
    input: LenderInput,
    // As with the keeper: a pool ends when its users have left.
    run: (ctx, input) => ctx.uncancellable((own) => new Lender(own, app, input).run()),
  });

class Lender {
  readonly #ctx: OrchestrationContext;
  readonly #input: LenderInput;
  readonly #users: PoolUsers;
  readonly #members: PoolMembers;
  readonly #attention: PoolAttention;
  readonly #waiting: Map<string, Borrower>;
  /** Member id → user it is lent to. */
  readonly #lentTo = new Map<string, string>();
  readonly #freeSince = new Map<string, number>();
  readonly #idleMs: number;
  #lendings: number;
  /** True if a member was opened, or failed to open, since the last look. */
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
    for (let handled = 0; handled < signalsPerExecution; handled++) {
      this.#changed = false;
      await this.#adjust();
      this.#lendOut();
      this.#publishStatus();
      const signal = PoolSignal.safeParse(await this.#next());
      if (signal.success) this.#handle(signal.data);
    }
    const { poolId, pool } = this.#input;
    this.#ctx.continueAsNew({
      poolId,
      pool: { ...pool, ...this.#users.asked },
      ...this.#users.known,
      orders: this.#users.orders,
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
    if (!this.#users.wanted && list.length === 0) return undefined;
    const leftMs = this.#users.leftMs(now);
    const spare = this.#spare()[0];
    const idleMs = spare && this.#idleMs > 0 ? this.#freeSinceOf(spare) + this.#idleMs - now : lookEveryMs;
    const times = [lookEveryMs, retryAt - now, leftMs ?? 0, idleMs];
    return Math.min(...times.filter((ms) => ms > 0));
  }

  #handle(signal: PoolSignal): void {
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
        return; // the lender itself knows how many borrowers wait
      default:
        return this.#users.order(signal);
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

  /** Forgets lost members, lets unneeded members go, and opens as many as there are borrowers. */
  async #adjust(): Promise<void> {
    const now = this.#ctx.now();
    const abandoned = this.#users.leftMs(now) === 0;
    for (const member of [...this.#members.list]) {
      // A member that is being opened can only be closed once it is open. While the pool is paused, a
      // borrower keeps its member.
      const lent = this.#users.paused && this.#lentTo.has(member.id);
      if (isGone(member) || (abandoned && !lent && member.session !== undefined)) await this.#letGo(member);
    }
    for (const member of this.#spare()) {
      if (this.#idleMs > 0 && now - this.#freeSinceOf(member) >= this.#idleMs) await this.#letGo(member);
    }
    if (!this.#users.wanted || now < this.#members.retryAt) return;
    const wanted = Math.min(
      this.#users.size.max,
      Math.max(this.#minimum, this.#lentTo.size + this.#waiting.size),
    );
    while (this.#members.list.length < wanted) this.#members.add(false);
  }

  get #minimum(): number {
    return this.#users.minimum;
  }

  /** Free members beyond the minimum, longest idle first. */
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
    this.#lentTo.delete(member.id); // LENDER-3: the borrower learned of it from the end of the session
    this.#freeSince.delete(member.id);
    await this.#members.letGo(member);
  }

  #lendOut(): void {
    if (this.#users.paused) return;
    const free = this.#members.list.filter(({ id, session }) => session && !this.#lentTo.has(id));
    for (const member of free)
      if (!this.#freeSince.has(member.id)) this.#freeSince.set(member.id, this.#ctx.now());
    // Lend the member used last, so that those idle for long may go.
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
    // A free member that was lost is claimed again by itself; the lender must notice when that happens.
    for (const member of free) if (stateOf(member) !== "active") this.#members.whenHeld(member);
  }

  #publishStatus(): void {
    const { min, max } = this.#users.size;
    this.#attention.publishStatus({
      ...{ type: this.#input.pool.type, min, max, ...this.#users.orders },
      users: this.#users.count,
      members: this.#members.list.length,
      lent: this.#lentTo.size,
      waiting: this.#waiting.size,
      error: this.#members.lastError,
    });
  }
}
