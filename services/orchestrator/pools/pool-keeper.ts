/**
 * Keeps a pool of sessions: an orchestration like any other, so the pool survives whatever its users survive. It
 * counts its users, keeps the minimum warm, adds a member when calls wait, and lets idle ones park.
 *
 * POOL-2 While anybody uses the pool it has a member, or tries to get one: nobody else looks after its queue.
 */

import { z } from "zod";
import { PoolSignal, PoolSpec, poolOrchestration } from "../../../schemas/index.ts";
import {
  type App,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { PoolAttention } from "./pool-attention.ts";
import { isGone, lookEveryMs, PoolMembers, stateOf } from "./pool-members.ts";
import { PoolUsers } from "./pool-users.ts";

const KeeperInput = z.object({
  poolId: z.string(),
  pool: PoolSpec,
  users: z.array(z.string()).default([]),
  left: z.array(z.string()).default([]),
  members: z.array(z.object({ id: z.string(), spare: z.boolean() })).default([]),
  made: z.number().default(0),
});
type KeeperInput = z.infer<typeof KeeperInput>;

/** A history of this many signals is long enough. */
const signalsPerExecution = 300;

export const poolKeeper = (app: App) =>
  defineOrchestration(poolOrchestration, {
    input: KeeperInput,
    // A pool goes when its users go. An instance that was cancelled could never be started again under its id.
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
        if (this.#users.count === 0) this.#attention.wake();
      },
      onFailed: () => this.#attention.wake(),
    });
  }

  async run(): Promise<void> {
    for (const { id, spare } of this.#input.members) this.#members.open(id, spare);
    for (let heard = 0; heard < signalsPerExecution; heard++) {
      await this.#adjust();
      this.#tellPeople();
      const signal = PoolSignal.safeParse(await this.#attention.next(this.#silenceMs()));
      if (signal.success) this.#hear(signal.data);
    }
    const { poolId, pool } = this.#input;
    this.#ctx.continueAsNew({
      poolId,
      pool: { ...pool, ...this.#users.size },
      ...this.#users.known,
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

  #hear(signal: PoolSignal): void {
    switch (signal.kind) {
      case "join":
        this.#users.join(signal, this.#users.count === 0 && this.#members.list.length === 0);
        return;
      case "leave":
        return this.#users.leave(signal.user, this.#ctx.now());
      case "grow":
        if (this.#mayGrow()) this.#members.add(true);
        return;
    }
  }

  /** At most doubled at a time: those under way may be enough. */
  #mayGrow(): boolean {
    const alive = this.#members.list.filter((member) => !isGone(member));
    const coming = alive.map(stateOf).filter((state) => state === "opening" || state === "claimed").length;
    const { max } = this.#users.size;
    return this.#users.count > 0 && alive.length < max && coming < Math.max(1, alive.length - coming);
  }

  /** Replaces what is lost, forgets what has parked, lets everything go when nobody is left. */
  async #adjust(): Promise<void> {
    const now = this.#ctx.now();
    const abandoned = this.#users.leftMs(now) === 0;
    for (const member of [...this.#members.list]) {
      // One that is still being opened can be closed when it is there, and not before.
      const ends = isGone(member) || (abandoned && member.session !== undefined);
      if (ends) await this.#members.letGo(member);
    }
    if (this.#users.count === 0 || now < this.#members.retryAt) return;
    const minimum = Math.max(1, this.#users.size.min); // POOL-2
    while (this.#members.list.filter(({ spare }) => !spare).length < minimum) this.#members.add(false);
  }

  #tellPeople(): void {
    this.#attention.tell({
      users: this.#users.count,
      members: this.#members.list.length,
      error: this.#members.lastError,
    });
  }
}
