/**
 * Keeps a pool of sessions. The keeper is an orchestration like any other, so the pool survives whatever its
 * users survive. It counts the pool's users, keeps the minimum warm, adds a member when calls wait, and lets
 * idle members park.
 *
 * POOL-2 While the pool has a user it has a member, or tries to get one: no other process looks after its
 *    queue.
 */

import { z } from "zod";
import { PoolOrders, PoolSignal, PoolSpec, poolOrchestration } from "../../../schemas/index.ts";
import {
  type App,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { PoolAttention } from "./pool-attention.ts";
import { isGone, lookEveryMs, type Member, PoolMembers, stateOf } from "./pool-members.ts";
import { PoolUsers } from "./pool-users.ts";

const KeeperInput = z.object({
  poolId: z.string(),
  pool: PoolSpec,
  users: z.array(z.string()).default([]),
  left: z.array(z.string()).default([]),
  members: z.array(z.object({ id: z.string(), spare: z.boolean() })).default([]),
  made: z.number().default(0),
  orders: PoolOrders.optional(),
});
type KeeperInput = z.infer<typeof KeeperInput>;

/** The keeper continues as new after this many signals, to keep its history short. */
const signalsPerExecution = 300;

export const poolKeeper = (app: App) =>
  defineOrchestration(poolOrchestration, {
    input: KeeperInput,
    // A pool ends when its users have left. A cancelled instance could never be started again under its id.
    run: (ctx, input) => ctx.uncancellable((own) => new Keeper(own, app, input).run()),
  });

class Keeper {
  readonly #ctx: OrchestrationContext;
  readonly #input: KeeperInput;
  readonly #users: PoolUsers;
  readonly #members: PoolMembers;
  readonly #attention: PoolAttention;

  constructor(ctx: OrchestrationContext, app: App, input: KeeperInput) {
    const { poolId, pool, made } = input;
    this.#ctx = ctx;
    this.#input = input;
    this.#users = new PoolUsers(input, pool, ctx.now());
    this.#attention = new PoolAttention(ctx);
    this.#members = new PoolMembers({
      ...{ ctx, app, poolId, pool, made },
      onOpened: () => {
        if (!this.#users.wanted) this.#attention.wake();
      },
      onFailed: () => this.#attention.wake(),
    });
  }

  async run(): Promise<void> {
    for (const { id, spare } of this.#input.members) this.#members.open(id, spare);
    for (let handled = 0; handled < signalsPerExecution; handled++) {
      await this.#adjust();
      this.#publishStatus();
      const signal = PoolSignal.safeParse(await this.#attention.next(this.#silenceMs()));
      if (signal.success) this.#handle(signal.data);
    }
    const { poolId, pool } = this.#input;
    this.#ctx.continueAsNew({
      poolId,
      pool: { ...pool, ...this.#users.asked },
      ...this.#users.known,
      orders: this.#users.orders,
      members: this.#members.list.map(({ id, spare }) => ({ id, spare })),
      made: this.#members.made,
    });
  }

  #silenceMs(): number | undefined {
    const now = this.#ctx.now();
    const leftMs = this.#users.leftMs(now);
    if (leftMs === undefined) {
      const { retryAt } = this.#members;
      return retryAt > now ? Math.min(lookEveryMs, retryAt - now) : lookEveryMs;
    }
    if (this.#members.list.length === 0) return undefined;
    return leftMs > 0 ? leftMs : lookEveryMs;
  }

  #handle(signal: PoolSignal): void {
    switch (signal.kind) {
      case "join":
        this.#users.join(signal, this.#users.count === 0 && this.#members.list.length === 0);
        return;
      case "leave":
        return this.#users.leave(signal.user, this.#ctx.now());
      case "grow":
        if (this.#mayGrow()) this.#members.add(true);
        return;
      default:
        return this.#users.order(signal);
    }
  }

  /** At most doubles the members at a time: those being opened may be enough. */
  #mayGrow(): boolean {
    const alive = this.#members.list.filter((member) => !isGone(member));
    const coming = alive.map(stateOf).filter((state) => state === "opening" || state === "claimed").length;
    const { max } = this.#users.size;
    return this.#users.wanted && alive.length < max && coming < Math.max(1, alive.length - coming);
  }

  /** Replaces lost members, forgets idle ones, and lets all members go when no user is left. */
  async #adjust(): Promise<void> {
    const now = this.#ctx.now();
    const abandoned = this.#users.leftMs(now) === 0;
    for (const member of [...this.#members.list]) {
      // A member that is being opened can only be closed once it is open.
      const ends = isGone(member) || (abandoned && member.session !== undefined);
      if (ends) await this.#members.letGo(member);
    }
    if (!this.#users.wanted) return;
    const { minimum, size } = this.#users; // POOL-2
    const kept = () => this.#members.list.filter(({ spare }) => !spare);
    await this.#shrink(kept, minimum);
    await this.#shrink(() => this.#members.list, size.max);
    if (now < this.#members.retryAt) return;
    while (kept().length < minimum) this.#members.add(false);
  }

  /** Lets the youngest members go. Calls that run there return to the pool's queue. */
  async #shrink(list: () => readonly Member[], most: number): Promise<void> {
    for (const member of list().slice(most)) if (member.session) await this.#members.letGo(member);
  }

  #publishStatus(): void {
    const { min, max } = this.#users.size;
    this.#attention.publishStatus({
      ...{ type: this.#input.pool.type, min, max, ...this.#users.orders },
      users: this.#users.count,
      members: this.#members.list.length,
      error: this.#members.lastError,
    });
  }
}
