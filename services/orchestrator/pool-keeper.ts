/**
 * Keeps a pool of sessions: an orchestration like any other, so the pool survives whatever its users survive. It
 * counts its users, keeps the minimum warm, adds a member when calls wait, and lets idle ones park.
 */

import { z } from "zod";
import {
  type PoolSignal,
  PoolSpec,
  poolMetadataKey,
  poolOrchestration,
  poolSignal,
} from "../../schemas/index.ts";
import { type App, defineOrchestration, type OrchestrationContext } from "../../shared/definitions/index.ts";
import { NonRetryableError } from "../../shared/errors/index.ts";

const KeeperInput = z.object({
  poolId: z.string(),
  pool: PoolSpec,
  users: z.array(z.string()).default([]),
  members: z.array(z.object({ id: z.string(), spare: z.boolean() })).default([]),
  made: z.number().default(0),
});
type KeeperInput = z.infer<typeof KeeperInput>;

/** Members beyond the minimum park when nobody called for so long. */
const spareIdle = "60s";
/** Without users the members stay so long, in case the next one comes. */
const lingerMs = 60_000;
const lookEveryMs = 30_000;
/** A history of this many signals is long enough. */
const signalsPerExecution = 300;
const growGapMs = 500;

interface Member {
  id: string;
  /** Beyond the minimum. */
  spare: boolean;
  state(): string;
  close(): Promise<void>;
}

export const poolKeeper = (app: App) =>
  defineOrchestration(poolOrchestration, {
    input: KeeperInput,
    async run(ctx, input) {
      const keeper = new Keeper(ctx, app, input);
      await keeper.run();
    },
  });

class Keeper {
  readonly #ctx: OrchestrationContext;
  readonly #app: App;
  readonly #input: KeeperInput;
  readonly #users: Set<string>;
  readonly #members: Member[] = [];
  #made: number;
  #min: number;
  #max: number;
  #grewAt = 0;

  constructor(ctx: OrchestrationContext, app: App, input: KeeperInput) {
    this.#ctx = ctx;
    this.#app = app;
    this.#input = input;
    this.#users = new Set(input.users);
    this.#made = input.made;
    this.#min = input.pool.min;
    this.#max = input.pool.max;
  }

  async run(): Promise<void> {
    for (const { id, spare } of this.#input.members) this.#open(id, spare);
    let lonelySince = this.#ctx.now();
    for (let heard = 0; heard < signalsPerExecution; heard++) {
      await this.#adjust(this.#ctx.now() - lonelySince >= lingerMs && this.#users.size === 0);
      const signal = await this.#next();
      if (signal) this.#hear(signal);
      if (this.#users.size > 0) lonelySince = this.#ctx.now();
    }
    const members = this.#members.map(({ id, spare }) => ({ id, spare }));
    const { poolId, pool } = this.#input;
    this.#ctx.continueAsNew({
      poolId,
      pool: { ...pool, min: this.#min, max: this.#max },
      users: [...this.#users],
      members,
      made: this.#made,
    });
  }

  #next(): Promise<PoolSignal | undefined> {
    const silence = this.#ctx.sleep(this.#users.size > 0 ? lookEveryMs : lingerMs).then(() => undefined);
    return Promise.race([this.#ctx.waitForSignal<PoolSignal>(poolSignal), silence]);
  }

  #hear(signal: PoolSignal): void {
    switch (signal.kind) {
      case "join":
        this.#users.add(signal.user);
        this.#min = Math.max(this.#min, signal.min);
        this.#max = Math.max(this.#max, signal.max);
        return;
      case "leave":
        this.#users.delete(signal.user);
        return;
      case "grow":
        if (this.#ctx.now() - this.#grewAt < growGapMs || this.#alive() >= this.#max) return;
        this.#grewAt = this.#ctx.now();
        this.#add(true);
    }
  }

  #alive(): number {
    return this.#members.filter((member) => !gone.has(member.state())).length;
  }

  /** Replaces what is lost, forgets what has parked, lets everything go when nobody is left. */
  async #adjust(abandoned: boolean): Promise<void> {
    for (const member of [...this.#members]) {
      if (!abandoned && !gone.has(member.state())) continue;
      this.#members.splice(this.#members.indexOf(member), 1);
      await member.close();
    }
    while (
      !abandoned &&
      this.#users.size > 0 &&
      this.#members.filter(({ spare }) => !spare).length < this.#min
    ) {
      this.#add(false);
    }
  }

  #add(spare: boolean): void {
    this.#open(`${this.#input.poolId}-m${++this.#made}`, spare);
  }

  #open(id: string, spare: boolean): void {
    const { pool, poolId } = this.#input;
    const definition = this.#app.sessions.get(pool.type);
    if (!definition)
      throw new NonRetryableError(`no session type named "${pool.type}"`, { code: "unknown_session_type" });
    const config = pool.config && "json" in pool.config ? pool.config.json : undefined;
    let state = "opening";
    let close = async (): Promise<void> => undefined;
    this.#ctx
      .openSession(definition, {
        id,
        config,
        onLost: "reclaim",
        maxInitAttempts: 5,
        idleTimeout: spare ? spareIdle : 0,
        metadata: { [poolMetadataKey]: poolId },
        // Members of a pool are better spread than warm.
        placement: { affinityKey: id },
      })
      .then(
        (session) => {
          state = "";
          close = () => session.close();
          member.state = () => session.info.state;
        },
        () => {
          state = "failed";
        },
      );
    const member: Member = { id, spare, state: () => state, close: () => close() };
    this.#members.push(member);
  }
}

const gone: ReadonlySet<string> = new Set(["parked", "lost", "failed", "closed"]);
