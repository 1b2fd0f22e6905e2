/** Pools, for clients: list, resize, call. */
import { z } from "zod";
import {
  lenderOrchestration,
  type PoolSignal,
  poolCallOrchestration,
  poolInstance,
  poolOrchestration,
  poolSignal,
} from "../../../schemas/index.ts";
import { encode, publishOrThrow, requireToken } from "../../bus/index.ts";
import {
  type AnySession,
  type Call,
  type CallsOf,
  type ConfigOf,
  checkedPool,
  type InputArguments,
  type PoolOptions,
  validate,
} from "../../definitions/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { parseDuration, token } from "../../runtime/index.ts";
import type { InstanceHandle } from "../instance/handle.ts";
import type { KeyedCallOptions } from "../keyed/keyed-session.ts";
import { userFacing } from "../user-facing.ts";
import type { ClientParts } from "./client-options.ts";
import type { InstanceView } from "./instances.ts";

/** One pool, as its keeper reports it. */
export interface PoolView {
  readonly poolId: string;
  readonly instanceId: string;
  readonly type: string;
  readonly sharing: "shared" | "exclusive";
  readonly min: number;
  readonly max: number;
  readonly members: number;
  readonly users: number;
  /** In an exclusive pool: borrowers that wait for a member. */
  readonly waiting: number;
  /** True if the pool was declared by `definePool`. */
  readonly declared: boolean;
  readonly resized: boolean;
  readonly paused: boolean;
  /** Why the pool could not get a member. */
  readonly error?: string | undefined;
}

/** The same for programs that print or send it. */
export const poolShape = z.strictObject({
  poolId: z.string(),
  instanceId: z.string(),
  type: z.string(),
  sharing: z.enum(["shared", "exclusive"]),
  min: z.int(),
  max: z.int(),
  members: z.int(),
  users: z.int(),
  waiting: z.int(),
  declared: z.boolean(),
  resized: z.boolean(),
  paused: z.boolean(),
  error: z.string().optional(),
}) satisfies z.ZodType<PoolView>;

/** A pool whose members take calls. */
export interface PoolHandle {
  readonly type: string;
  /** Makes a call by its name; a free member takes it. */
  call(name: string, input?: unknown, options?: KeyedCallOptions): Promise<unknown>;
}

/** The handle with the calls of the session's type, except calls named like the handle's own methods. */
export type PoolOf<D extends AnySession> = PoolHandle & {
  readonly [K in Exclude<keyof CallsOf<D>, keyof PoolHandle>]: CallsOf<D>[K] extends Call<
    infer _S,
    infer I,
    infer O
  >
    ? (...rest: InputArguments<I, KeyedCallOptions>) => Promise<O>
    : never;
};

/** The methods of the client that pools need. */
export interface PoolClientUses {
  start(name: string, input: unknown): Promise<InstanceHandle>;
  list(name: string): Promise<InstanceView[]>;
  cancel(instanceId: string, reason: string): Promise<void>;
}

/**
 * Lists, resizes, pauses and resumes pools.
 *
 * @example
 * ```ts
 * for (const { poolId, waiting, max } of await client.pools.list())
 *   if (waiting > 0) await client.pools.resize(poolId, { min: 1, max: max + 1 });
 * ```
 */
export class PoolClient {
  readonly #parts: ClientParts;
  readonly #uses: PoolClientUses;

  /** @internal Part of {@link Client}. */
  constructor(parts: ClientParts, uses: PoolClientUses) {
    this.#parts = parts;
    this.#uses = uses;
  }

  list(): Promise<PoolView[]> {
    return userFacing(async () => {
      const [shared, lent] = await Promise.all([
        this.#uses.list(poolOrchestration),
        this.#uses.list(lenderOrchestration),
      ]);
      return [
        ...shared.map((view) => viewOf(view, "shared")),
        ...lent.map((view) => viewOf(view, "exclusive")),
      ].sort((a, b) => (a.poolId < b.poolId ? -1 : 1));
    });
  }

  /**
   * Holds until the declaration changes. Members beyond `max` are closed; their calls run again on other
   * members.
   */
  resize(poolId: string, { min, max }: { min: number; max: number }): Promise<void> {
    return userFacing(async () => {
      checkedPool(`pool ${poolId}`, undefined, { min, max });
      await this.#order(poolId, { kind: "resize", min, max });
    });
  }

  /** Closes the pool's members; its calls wait until it is resumed. A borrower keeps the member it has. */
  pause(poolId: string): Promise<void> {
    return this.#order(poolId, { kind: "pause" });
  }

  resume(poolId: string): Promise<void> {
    return this.#order(poolId, { kind: "resume" });
  }

  /** For a pool whose declaration is no longer deployed: it is removed when no instance uses it any more. */
  forget(poolId: string): Promise<void> {
    return this.#order(poolId, { kind: "forget" });
  }

  of<D extends AnySession>(type: D | string, options: PoolOptions<ConfigOf<D>>): PoolOf<D> {
    const definition = typeof type === "string" ? undefined : type;
    const name = requireToken("session type", typeof type === "string" ? type : type.name);
    checkedPool(`pool("${name}")`, definition, options);
    const call = (callName: string, input?: unknown, own: KeyedCallOptions = {}) =>
      this.#call({ name, definition, options: { ...options } }, callName, input, own);
    const typed = Object.keys(definition?.calls ?? {})
      .filter((callName) => callName !== "call" && callName !== "type")
      .map((callName) => [callName, (input: unknown, own?: KeyedCallOptions) => call(callName, input, own)]);
    return { type: name, call, ...Object.fromEntries(typed) } as unknown as PoolOf<D>;
  }

  #call(
    { name, definition, options }: { name: string; definition: AnySession | undefined; options: PoolOptions },
    call: string,
    input: unknown,
    { timeout, signal }: KeyedCallOptions,
  ): Promise<unknown> {
    return userFacing(async () => {
      const found = definition && Object.hasOwn(definition.calls, call) ? definition.calls[call] : undefined;
      if (definition && !found)
        throw new HoldfastError({
          code: "unknown_call",
          message: `session "${name}" has no call ${JSON.stringify(call)}; there are: ${Object.keys(definition.calls).sort().join(", ") || "none"}`,
        });
      validate(found?.input, input, "invalid_input", `input of ${name}.${call}`);
      const timeoutMs = timeout === undefined ? undefined : parseDuration(timeout, "timeout");
      const handle = await this.#uses.start(poolCallOrchestration, {
        ...{ type: name, call, options },
        ...(input !== undefined && { input }),
        ...(timeoutMs !== undefined && { timeoutMs }),
      });
      const giveUp = () =>
        void this.#uses.cancel(handle.instanceId, "its caller gave up").catch(() => undefined);
      signal?.addEventListener("abort", giveUp, { once: true });
      try {
        const output = await handle.result(signal ? { signal } : {});
        return validate(found?.output, output, "invalid_output", `output of ${name}.${call}`);
      } finally {
        signal?.removeEventListener("abort", giveUp);
      }
    });
  }

  #order(poolId: string, signal: PoolSignal): Promise<void> {
    return userFacing(async () => {
      const keeper = poolInstance(requireToken("pool id", poolId));
      const known = (await this.list()).some((pool) => pool.instanceId === keeper);
      if (!known) throw new HoldfastError({ code: "pool_not_found", message: `there is no pool ${poolId}` });
      const { bus, names, runtime } = this.#parts;
      await publishOrThrow(bus, {
        subject: names.signal(keeper, poolSignal),
        body: encode(signal),
        msgId: `${signal.kind}-${poolId}-${token(runtime.random)}`,
      });
    });
  }
}

function viewOf({ instanceId, customStatus }: InstanceView, sharing: PoolView["sharing"]): PoolView {
  const status = (customStatus ?? {}) as Record<string, unknown>;
  const number = (name: string) => (typeof status[name] === "number" ? status[name] : 0);
  return {
    poolId: instanceId.slice(poolInstance("").length),
    instanceId,
    type: String(status.type ?? ""),
    sharing,
    min: number("min"),
    max: number("max"),
    members: number("members"),
    users: number("users"),
    waiting: number("waiting"),
    declared: status.declared !== undefined,
    resized: status.resized !== undefined,
    paused: status.paused === true,
    ...(typeof status.error === "string" && { error: status.error }),
  };
}
