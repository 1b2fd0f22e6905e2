/**
 * A pool as code sees it: it has the calls of a session, and any free member takes the next one. A pool's
 * calls wait in a queue of their own, from which the members on workers take. So no call waits behind a busy
 * member while another is idle, and the other members take the calls of a lost one.
 */

import { createHash } from "node:crypto";
import { Name, type PoolSpec, poolQueue } from "../../../../schemas/index.ts";
import type {
  ActivityOptions,
  AnyActivity,
  AnySession,
  BareSessionHandle,
  PoolOptions,
} from "../../../definitions/index.ts";
import { poolOptionNames, refuseUnknownOptions, validate } from "../../../definitions/index.ts";
import { CancelledError, HoldfastError, SessionUnusable } from "../../../errors/index.ts";
import { parseDuration } from "../../../runtime/index.ts";
import type { Context } from "../context.ts";
import { requireId } from "../require.ts";
import { Scope } from "../scope.ts";
import { rejected, snapshot } from "../snapshot.ts";
import { borrowMember } from "./borrowed-member.ts";

const defaultMin = 1;
const defaultMax = 4;
const defaultLinger = "60s";
/** Every start of the pool's keeper carries the config. */
const mostConfigBytes = 64 * 1024;
/** Leaves room for the rest of the names made from it: the keeper's instance, the members' ids, the queue. */
const longestName = 80;

export function usePool(ctx: Context, type: AnySession, options: PoolOptions): Promise<BareSessionHandle> {
  try {
    const { scopeOf: scope } = ctx;
    if (scope.cancelled) throw new CancelledError(scope.reason);
    if (ctx.runner.followsPromises) refuseUnknownOptions(`usePool("${type.name}")`, options, poolOptionNames);
    const wanted = wantedPool(type, options);
    return options.sharing === "exclusive"
      ? borrowMember(ctx, type, wanted)
      : Promise.resolve(join(ctx, type, wanted));
  } catch (error) {
    return rejected(error);
  }
}

export interface WantedPool {
  readonly poolId: Name;
  readonly pool: PoolSpec;
  readonly bytes: number;
}

/** Returns the pool that these options name. Throws if they are wrong. */
export function wantedPool(type: AnySession, options: PoolOptions): WantedPool {
  const { config, sharing = "shared" } = options;
  const { min, max, lingerMs } = sizeOf(type, options);
  validate(type.config, config, "invalid_config", `config of session "${type.name}"`);
  const { payload, bytes } = snapshot(config, `config of session "${type.name}"`);
  if (bytes > mostConfigBytes) {
    throw refused(type, `its config has ${bytes} bytes, at most ${mostConfigBytes} are allowed: name a file`);
  }
  const pool: PoolSpec = { type: Name.parse(type.name), config: payload, min, max, lingerMs };
  if (sharing === "exclusive") pool.sharing = sharing;
  return { poolId: poolIdOf(type, options.id, pool), pool, bytes };
}

function join(ctx: Context, type: AnySession, { poolId, pool, bytes }: WantedPool): BareSessionHandle {
  const { runner } = ctx;
  const handles = runner.pools.get(poolId) ?? 0;
  if (handles === 0) runner.issue({ kind: "pool.joined", poolId, pool }, bytes);
  runner.pools.set(poolId, handles + 1);
  return makeHandle(ctx, type, poolId);
}

function sizeOf(type: AnySession, options: PoolOptions): { min: number; max: number; lingerMs: number } {
  const min = options.min ?? defaultMin;
  const max = options.max ?? Math.max(defaultMax, min);
  if (!Number.isInteger(min) || !Number.isInteger(max) || min < 0 || max < 1 || min > max) {
    const rule = "must be whole numbers, 0 <= min <= max, max >= 1";
    throw refused(type, `min (${min}) and max (${max}) ${rule}`);
  }
  return { min, max, lingerMs: parseDuration(options.linger ?? defaultLinger, "linger") };
}

/**
 * Type, config and sharing are part of the id: whatever two users name their pools, no call reaches a model
 * of another config, or a member that a borrower has for itself.
 */
function poolIdOf(type: AnySession, id: string | undefined, { config, sharing }: PoolSpec): Name {
  const name = id === undefined ? type.name.slice(0, longestName) : requireId(Name, "pool id", id);
  if (name.length > longestName) throw refused(type, `an id has at most ${longestName} characters`);
  const made = createHash("sha256")
    .update(JSON.stringify(sharing ? [type.name, config, sharing] : [type.name, config]))
    .digest("hex");
  return Name.parse(`${name}-${made.slice(0, 12)}`);
}

const refused = (type: AnySession, why: string): HoldfastError =>
  new HoldfastError({ code: "invalid_option", message: `pool of "${type.name}": ${why}` });

function makeHandle(ctx: Context, type: AnySession, poolId: Name): BareSessionHandle {
  const { runner } = ctx;
  const target = { kind: "queue", queue: Name.parse(poolQueue(poolId)) } as const;
  // Open calls of this handle end with it: the members that would serve them may go.
  const scope = new Scope(ctx.scopeOf, false);
  const inside = ctx.within(scope);
  let closed = false;
  const unusable = (message: string) => rejected(new SessionUnusable({ code: "session_unusable", message }));
  const handle: BareSessionHandle = {
    id: poolId,
    info: {
      id: poolId,
      type: type.name,
      state: "pool",
      epoch: undefined,
      attachment: undefined,
      workerId: undefined,
      host: undefined,
      resourceId: undefined,
      inits: 0,
      metadata: {},
    },
    run: ((activity: AnyActivity) =>
      unusable(
        `pool ${poolId} runs the calls of its type; "${activity.name}" is an activity`,
      )) as BareSessionHandle["run"],
    async close() {
      if (closed) return;
      closed = true;
      scope.cancel("the pool was left");
      const left = (runner.pools.get(poolId) ?? 1) - 1;
      runner.pools.set(poolId, left);
      if (left === 0) runner.issue({ kind: "pool.left", poolId });
    },
    setMetadata() {
      throw new SessionUnusable({ code: "session_unusable", message: `pool ${poolId} is not one session` });
    },
    token() {
      throw new SessionUnusable({ code: "session_unusable", message: `pool ${poolId} is not one resource` });
    },
    async [Symbol.asyncDispose]() {
      await handle.close();
    },
  };
  const calls = Object.entries(type.calls).map(([name, call]) => {
    const definition = { name, input: call.input, output: call.output };
    const invoke = (input: unknown, options: ActivityOptions = {}) =>
      closed ? unusable(`pool ${poolId} was left`) : inside.task(definition, input, options, target, 3);
    return [name, invoke];
  });
  return Object.assign(handle, Object.fromEntries(calls));
}
