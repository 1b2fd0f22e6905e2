/**
 * Keeps a pool of sessions: an orchestration like any other, so the pool survives whatever its users survive. It
 * counts its users, keeps the minimum warm, adds a member when calls wait, and lets idle ones park.
 *
 * K1 A use joins once and leaves once, in whatever order both arrive: who has left does not join again.
 * K2 While anybody uses the pool it has a member, or tries to get one: nobody else looks after its queue.
 */

import { z } from "zod";
import { PoolSignal, PoolSpec, poolMetadataKey, poolOrchestration, poolSignal } from "../../schemas/index.ts";
import {
  type App,
  type BareSessionHandle,
  defineOrchestration,
  type OrchestrationContext,
} from "../../shared/definitions/index.ts";
import { Fault } from "../../shared/errors/index.ts";

const KeeperInput = z.object({
  poolId: z.string(),
  pool: PoolSpec,
  users: z.array(z.string()).default([]),
  left: z.array(z.string()).default([]),
  members: z.array(z.object({ id: z.string(), spare: z.boolean() })).default([]),
  made: z.number().default(0),
});
type KeeperInput = z.infer<typeof KeeperInput>;

/** Members beyond the minimum park when nobody called for so long, unless their type says otherwise. */
const spareIdle = "60s";
const defaultLingerMs = 60_000;
const lookEveryMs = 30_000;
/** Before a member that could not be had is asked for again; doubled each time. */
const firstRetryMs = 1_000;
/** A history of this many signals is long enough. */
const signalsPerExecution = 300;
/** Joins are late by seconds, if at all. */
const leftRemembered = 200;

interface Member {
  id: string;
  /** Beyond the minimum. */
  spare: boolean;
  /** Absent until somebody holds it. */
  session: BareSessionHandle | undefined;
  failed: boolean;
}

const stateOf = ({ session, failed }: Member): string =>
  failed ? "failed" : (session?.info.state ?? "opening");
const gone: ReadonlySet<string> = new Set(["parked", "lost", "failed", "closed"]);
const isGone = (member: Member): boolean => gone.has(stateOf(member));

export const poolKeeper = (app: App) =>
  defineOrchestration(poolOrchestration, {
    input: KeeperInput,
    // A pool goes when its users go. An instance that was cancelled could never be started again under its id.
    run: (ctx, input) => ctx.uncancellable((own) => new Keeper(own, app, input).run()),
  });

class Keeper {
  readonly #ctx: OrchestrationContext;
  readonly #app: App;
  readonly #input: KeeperInput;
  readonly #users: Set<string>;
  readonly #left: Set<string>;
  readonly #members: Member[] = [];
  #made: number;
  #min: number;
  #max: number;
  #lingerMs: number;
  #lonelySince: number;
  #failures = 0;
  #retryAt = 0;
  #lastError: string | undefined;
  #status = "";
  #wake: () => void = () => undefined;

  constructor(ctx: OrchestrationContext, app: App, input: KeeperInput) {
    this.#ctx = ctx;
    this.#app = app;
    this.#input = input;
    this.#users = new Set(input.users);
    this.#left = new Set(input.left);
    this.#made = input.made;
    this.#min = input.pool.min;
    this.#max = input.pool.max;
    this.#lingerMs = input.pool.lingerMs ?? defaultLingerMs;
    this.#lonelySince = ctx.now();
  }

  async run(): Promise<void> {
    for (const { id, spare } of this.#input.members) this.#open(id, spare);
    for (let heard = 0; heard < signalsPerExecution; heard++) {
      await this.#adjust();
      this.#tellPeople();
      const signal = PoolSignal.safeParse(await this.#next());
      if (signal.success) this.#hear(signal.data);
    }
    const { poolId, pool } = this.#input;
    this.#ctx.continueAsNew({
      poolId,
      pool: { ...pool, min: this.#min, max: this.#max, lingerMs: this.#lingerMs },
      users: [...this.#users],
      left: [...this.#left],
      members: this.#members.map(({ id, spare }) => ({ id, spare })),
      made: this.#made,
    });
  }

  /** What is said next; undefined when it is time to look. */
  #next(): Promise<unknown> {
    const said = this.#ctx.waitForSignal(poolSignal);
    const silenceMs = this.#silenceMs();
    if (silenceMs === undefined) return said;
    const changed = new Promise<undefined>((resolve) => {
      this.#wake = () => resolve(undefined);
    });
    return Promise.race([said, changed, this.#ctx.sleep(silenceMs)]);
  }

  #silenceMs(): number | undefined {
    const now = this.#ctx.now();
    if (this.#users.size > 0) {
      return this.#retryAt > now ? Math.min(lookEveryMs, this.#retryAt - now) : lookEveryMs;
    }
    if (this.#members.length === 0) return undefined;
    const leftMs = this.#lonelySince + this.#lingerMs - now;
    return leftMs > 0 ? leftMs : lookEveryMs;
  }

  #hear(signal: PoolSignal): void {
    switch (signal.kind) {
      case "join":
        return this.#join(signal);
      case "leave":
        return this.#leave(signal.user);
      case "grow":
        if (this.#mayGrow()) this.#add(true);
        return;
    }
  }

  #join({ user, min, max, lingerMs }: Extract<PoolSignal, { kind: "join" }>): void {
    if (this.#left.has(user)) return; // K1
    const first = this.#users.size === 0 && this.#members.length === 0;
    this.#users.add(user);
    // What the users before have asked for holds while the pool lives on; an empty one begins anew.
    this.#min = first ? min : Math.max(this.#min, min);
    this.#max = first ? max : Math.max(this.#max, max);
    this.#lingerMs = first ? (lingerMs ?? defaultLingerMs) : Math.max(this.#lingerMs, lingerMs ?? 0);
  }

  #leave(user: string): void {
    if (this.#users.delete(user)) this.#lonelySince = this.#ctx.now();
    this.#left.add(user);
    for (const one of this.#left) if (this.#left.size > leftRemembered) this.#left.delete(one);
  }

  /** At most doubled at a time: those under way may be enough. */
  #mayGrow(): boolean {
    const states = this.#members.map(stateOf);
    const alive = states.filter((state) => !gone.has(state)).length;
    const coming = states.filter((state) => state === "opening" || state === "claimed").length;
    return this.#users.size > 0 && alive < this.#max && coming < Math.max(1, alive - coming);
  }

  /** Replaces what is lost, forgets what has parked, lets everything go when nobody is left. */
  async #adjust(): Promise<void> {
    const now = this.#ctx.now();
    const abandoned = this.#users.size === 0 && now - this.#lonelySince >= this.#lingerMs;
    for (const member of [...this.#members]) {
      // One that is still being opened can be closed when it is there, and not before.
      const ends = isGone(member) || (abandoned && member.session !== undefined);
      if (!ends) continue;
      this.#members.splice(this.#members.indexOf(member), 1);
      await member.session?.close();
    }
    if (this.#users.size === 0 || now < this.#retryAt) return;
    const minimum = Math.max(1, this.#min); // K2
    while (this.#members.filter(({ spare }) => !spare).length < minimum) this.#add(false);
  }

  #add(spare: boolean): void {
    this.#open(`${this.#input.poolId}-m${++this.#made}`, spare);
  }

  #open(id: string, spare: boolean): void {
    const { pool, poolId } = this.#input;
    const definition = this.#app.sessions.get(pool.type);
    if (!definition) throw missingType(pool.type);
    const config = pool.config && "json" in pool.config ? pool.config.json : undefined;
    const member: Member = { id, spare, session: undefined, failed: false };
    this.#members.push(member);
    const opening = this.#ctx.openSession(definition, {
      id,
      config,
      onLost: "reclaim",
      maxInitAttempts: 5,
      idleTimeout: spare ? (definition.options.idleTimeout ?? spareIdle) : 0,
      metadata: { [poolMetadataKey]: poolId },
      // Members of a pool are better spread than warm.
      placement: { affinityKey: id },
    });
    opening.then(
      (session) => {
        member.session = session;
        this.#failures = 0;
        this.#lastError = undefined;
        if (this.#users.size === 0) this.#wake();
      },
      (error: unknown) => {
        member.failed = true;
        this.#failed(id, error);
      },
    );
  }

  #failed(id: string, error: unknown): void {
    this.#retryAt = this.#ctx.now() + Math.min(lookEveryMs, firstRetryMs * 2 ** this.#failures++);
    this.#lastError = error instanceof Error ? error.message : String(error);
    this.#ctx.log.warn(`member ${id} could not be had: ${this.#lastError}`);
    this.#wake();
  }

  #tellPeople(): void {
    const status = { users: this.#users.size, members: this.#members.length, error: this.#lastError };
    const text = JSON.stringify(status);
    if (text === this.#status) return;
    this.#status = text;
    this.#ctx.setStatus(status);
  }
}

/** Users have it, so a deployment does: until it is here, the keeper waits (T6). */
const missingType = (type: string): Fault =>
  new Fault("nondeterminism", {
    code: "unknown_session_type",
    message: `no session type named "${type}" in this deployment`,
    hint: "Deploy the application that uses the pool to every orchestrator.",
  });
