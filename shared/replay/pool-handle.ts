/**
 * A pool as code sees it: calls like a session's, but whichever member is free takes the next. A pool's calls wait in
 * a queue of their own; members on workers take from it, so no call waits behind a busy member while another is idle,
 * and what a lost member had is taken by the others.
 */
import { Name, poolQueue } from "../../schemas/index.ts";
import type {
  ActivityOptions,
  AnyActivity,
  AnySession,
  BareSessionHandle,
  PoolOptions,
} from "../definitions/index.ts";
import { validate } from "../definitions/index.ts";
import { HoldfastError, SessionUnusable } from "../errors/index.ts";
import { hash32 } from "../runtime/index.ts";
import { type Context, handled, snapshot } from "./context.ts";
import { openSession } from "./session-handle.ts";

const defaultMin = 1;
const defaultMax = 4;

export function usePool(ctx: Context, type: AnySession, options: PoolOptions): Promise<BareSessionHandle> {
  const promise = open(ctx, type, options);
  promise.catch(handled);
  return promise;
}

async function open(ctx: Context, type: AnySession, options: PoolOptions): Promise<BareSessionHandle> {
  const { config, sharing = "shared" } = options;
  if (sharing === "exclusive") return openSession(ctx, type, { config, onLost: "reclaim" });
  const min = options.min ?? defaultMin;
  const max = options.max ?? Math.max(defaultMax, min);
  if (!Number.isInteger(min) || !Number.isInteger(max) || min < 0 || max < 1 || min > max) {
    throw new HoldfastError({
      code: "invalid_option",
      message: `pool of "${type.name}": min (${min}) and max (${max}) must be whole numbers, 0 <= min <= max, max >= 1`,
    });
  }
  validate(type.config, config, "invalid_config", `config of session "${type.name}"`);
  const { payload, bytes } = snapshot(config, `config of session "${type.name}"`);
  const poolId = Name.parse(
    options.id ?? `${type.name.slice(0, 80)}-${hash32(JSON.stringify(config ?? null)).toString(36)}`,
  );
  const { runner } = ctx;
  if (!isJoined(ctx, poolId)) {
    runner.issue(
      { kind: "pool.joined", poolId, pool: { type: Name.parse(type.name), config: payload, min, max } },
      bytes,
    );
    runner.pools.set(poolId, "joined");
  }
  return makeHandle(ctx, type, poolId);
}

/** What the code did in this round comes before what the state knows. */
function isJoined({ runner }: Context, poolId: string): boolean {
  const now = runner.pools.get(poolId);
  return now === undefined ? runner.state.pools.has(poolId) : now === "joined";
}

function makeHandle(ctx: Context, type: AnySession, poolId: Name): BareSessionHandle {
  const { runner } = ctx;
  const target = { kind: "queue", queue: Name.parse(poolQueue(poolId)) } as const;
  const joined = () => isJoined(ctx, poolId);
  const refused = (message: string) => {
    const rejected = Promise.reject(new SessionUnusable({ code: "session_unusable", message }));
    rejected.catch(handled);
    return rejected;
  };
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
    },
    run: ((activity: AnyActivity) =>
      refused(
        `pool ${poolId} runs the calls of its type; "${activity.name}" is an activity`,
      )) as BareSessionHandle["run"],
    async close() {
      if (!joined()) return;
      runner.pools.set(poolId, "left");
      runner.issue({ kind: "pool.left", poolId });
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
      joined() ? ctx.task(definition, input, options, target, 3) : refused(`pool ${poolId} was left`);
    return [name, invoke];
  });
  return Object.assign(handle, Object.fromEntries(calls));
}
