import { bareSessionType, tokenPattern, tokenRule } from "../../schemas/index.ts";
import { Fault } from "../errors/index.ts";
import { type Duration, parseDuration } from "../runtime/index.ts";
import type { ActivityContext, SessionView, WorkLog } from "./activity.ts";
import { brand, requireName } from "./brand.ts";
import { checkSessionType } from "./check-session-type.ts";
import { checkHosting, type HostCommand, type HostingOptions } from "./hosting.ts";
import {
  callOptionNames,
  hostOptionNames,
  refuseUnknownOptions,
  sessionOptionNames,
} from "./option-names.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

/** The context of `init`, `restore` and `shutdown`. */
export interface InitContext {
  readonly session: Omit<SessionView, "events">;
  readonly signal: AbortSignal;
  readonly log: WorkLog;
  /**
   * How many threads a library should compute with here: this host's share of the cores, or the worker's
   * setting.
   */
  readonly threads: number;
  /** The value that `share` returned: a SharedArrayBuffer is the same memory in every thread. */
  readonly shared?: unknown;
  /** Reports a loaded model, shown in the worker's metadata and metrics. */
  reportModel(model: { name: string; device: string; loadMs: number; bytes?: number }): void;
}

/** The context of a call: an activity's context that always has the session. */
export interface CallContext extends ActivityContext {
  readonly session: SessionView;
}

/** How calls that arrive together are handed to `run` as one array. */
export interface BatchOptions {
  /** A batch of this many calls runs at once. */
  maxSize: number;
  /** A smaller batch runs when its first call has waited this long. */
  maxDelay: Duration;
}

interface CallShape<State, I, O> {
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly batch: { maxSize: number; maxDelay: Duration } | undefined;
  /** How long a single run may take; beyond it the call fails and the session is given up. */
  readonly timeout: Duration | undefined;
  readonly heartbeatTimeout: Duration | undefined;
  /** Undefined if the code is in a program of its own (`command`). */
  readonly run: ((state: State, input: never, ctx: CallContext) => unknown) | undefined;
  readonly types?: { input: I; output: O };
}

/** One call of a session type, as `call` returns it. */
export interface Call<State, I, O> extends CallShape<State, I, O> {
  readonly kind: "call";
}

/** A session's call of any input and output. */
// biome-ignore lint/suspicious/noExplicitAny: calls of every type live in one record
export type AnyCall<State = any> = Call<State, any, any>;

interface CallBase<IS, OS> {
  input?: IS;
  output?: OS;
  timeout?: Duration;
  heartbeatTimeout?: Duration;
}

type In<IS, I> = IS extends Schema ? SchemaOut<IS> : I;
type Out<OS, O> = OS extends Schema ? SchemaIn<OS> : O;

type BatchCallSpec<State, I, O, IS, OS> = CallBase<IS, OS> & {
  batch: BatchOptions;
  run(
    state: State,
    inputs: In<IS, I>[],
    ctx: CallContext,
  ): Promise<(Out<OS, O> | Error)[]> | (Out<OS, O> | Error)[];
};
type SingleCallSpec<State, I, O, IS, OS> = CallBase<IS, OS> & {
  batch?: undefined;
  run(state: State, input: In<IS, I>, ctx: CallContext): Promise<Out<OS, O>> | Out<OS, O>;
};
type CallMade<State, I, O, IS, OS> = Call<
  State,
  NoInfer<IS extends Schema ? SchemaIn<IS> : I>,
  NoInfer<OS extends Schema ? SchemaOut<OS> : O>
>;

/**
 * One call of a session type. With `batch`, `run` gets an array of inputs (calls that came together) and
 * returns an array of results of the same length; an `Error` in that array fails its item alone.
 *
 * @example
 * ```ts
 * calls: {
 *   embed: call({
 *     input: z.string(),
 *     batch: { maxSize: 16, maxDelay: "5ms" },
 *     run: (model: Model, texts) => model.embed(texts),
 *   }),
 * }
 * ```
 */
export function call<
  State,
  I = unknown,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
>(spec: BatchCallSpec<State, I, O, IS, OS>): CallMade<State, I, O, IS, OS>;
export function call<
  State,
  I = unknown,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
>(spec: SingleCallSpec<State, I, O, IS, OS>): CallMade<State, I, O, IS, OS>;
/** A call whose code is in the program that `command` starts; with `batch`, that program gets batches. */
export function call<
  I = unknown,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
>(
  spec?: CallBase<IS, OS> & { batch?: BatchOptions; run?: undefined },
): Call<unknown, IS extends Schema ? SchemaIn<IS> : I, OS extends Schema ? SchemaOut<OS> : O>;
export function call(spec: CallBase<Schema, Schema> & { batch?: BatchOptions; run?: unknown } = {}): unknown {
  refuseUnknownOptions("call", spec, callOptionNames);
  refuseUnknownOptions("batch of a call", spec.batch, { maxSize: true, maxDelay: true });
  const { input, output, batch, timeout, heartbeatTimeout, run } = spec;
  return { kind: "call", input, output, batch, timeout, heartbeatTimeout, run };
}

/** The options of `defineSession` besides its code: requirements, times, isolation, concurrency. */
export interface SessionTypeOptions extends HostingOptions {
  /** What a worker must have to hold a session: all tags (`WORKER_TAGS`), and so much of each resource free. */
  requires?: { tags?: string[]; resources?: Record<string, number> };
  /**
   * Parks a session after this long without a call. Without a checkpoint the state is lost then, and `init`
   * runs again. 0: never.
   */
  idleTimeout?: Duration;
  /** How soon a silent holder loses the session, in whole seconds. Default: the worker's setting. */
  leaseTtl?: Duration;
  /** How long the opening may take, with all tries of `init`. Default 30 s. */
  creationTimeout?: Duration;
  /** Longest life of a session, whatever happens. */
  executionTimeout?: Duration;
  /** Calls of one session that run at a time. Default 1, in order; with `threads` above 1 as many as threads. */
  concurrency?: number;
  /**
   * What happens to the session if a call was cancelled and its code has not stopped after 5 s. `give_up`
   * (default): the session is lost as `hung`, because that code may still use its state. `go_on`: the next
   * call runs beside it.
   */
  afterCancel?: "give_up" | "go_on";
  /** Most sessions of this type on one worker. */
  maxPerWorker?: number;
  /** Most sessions of this type held at a time, over all workers. */
  maxTotal?: number;
  /** Write a checkpoint after every n calls (needs `checkpoint`). A drain always writes one. */
  checkpointEvery?: number;
  /**
   * Sessions with the same key prefer a worker that is already warm for it. Default: digest of type and
   * config.
   */
  affinityKey?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: state and config are opaque to the engine
type Opaque = any;

/** A session type as `defineSession` returns it. */
export interface SessionDefinition<
  State = Opaque,
  Config = Opaque,
  Calls extends Record<string, AnyCall> = Record<string, AnyCall>,
> {
  readonly [brand]: "session";
  readonly name: string;
  readonly options: SessionTypeOptions;
  readonly config: Schema | undefined;
  readonly calls: Calls;
  init(ctx: InitContext, config: Config): Promise<State> | State;
  readonly share: ((ctx: InitContext, config: Config, bytes: Uint8Array | undefined) => unknown) | undefined;
  readonly checkpoint: ((state: State) => Promise<Uint8Array> | Uint8Array) | undefined;
  readonly restore:
    | ((ctx: InitContext, config: Config, bytes: Uint8Array) => Promise<State> | State)
    | undefined;
  readonly snapshot: ((state: State) => unknown) | undefined;
  readonly shutdown: ((state: State, ctx: InitContext) => Promise<void> | void) | undefined;
  readonly configTypes?: Config;
}

/** A session type of any config, state and calls. */
export type AnySession = SessionDefinition;
/** The config of a session type. */
export type ConfigOf<D> = D extends SessionDefinition<infer _S, infer C, infer _K> ? C : unknown;
/** The calls of a session type, by name. */
export type CallsOf<D> = D extends SessionDefinition<infer _S, infer _C, infer K> ? K : never;

/** `call` for a known type of state. */
interface CallOf<State> {
  <
    I = unknown,
    O = unknown,
    IS extends Schema | undefined = undefined,
    OS extends Schema | undefined = undefined,
  >(
    spec: BatchCallSpec<State, I, O, IS, OS>,
  ): CallMade<State, I, O, IS, OS>;
  <
    I = unknown,
    O = unknown,
    IS extends Schema | undefined = undefined,
    OS extends Schema | undefined = undefined,
  >(
    spec: SingleCallSpec<State, I, O, IS, OS>,
  ): CallMade<State, I, O, IS, OS>;
}

/**
 * `any` until TypeScript knows the state: it looks at calls with an annotated `state` before it looks at an
 * `init` whose parameters are not annotated.
 */
type Known<State> = unknown extends State ? Opaque : NoInfer<State>;

/** Code of a session type: `init` makes the state, `calls` work on it. */
interface SessionCode<State, Config, Calls extends Record<string, AnyCall>> extends SessionTypeOptions {
  init(ctx: InitContext, config: Config): Promise<State> | State;
  /**
   * With `(call) => ({ … })` after `init`, the type of the calls' `state` is the result of `init`. TypeScript
   * cannot infer that in a plain object, where `state` is `any` unless it is annotated.
   */
  calls: (Calls & { [K in keyof Calls]: AnyCall<Known<State>> }) | ((call: CallOf<State>) => Calls);
  /**
   * Runs once, before `init`, on one thread of the host; every thread's `init` finds the result in
   * `ctx.shared`. `bytes` is the checkpoint, if there is one.
   */
  share?(ctx: InitContext, config: Config, bytes: Uint8Array | undefined): unknown;
  checkpoint?(state: NoInfer<State>): Promise<Uint8Array> | Uint8Array;
  // `restore` must return the same type of state as `init`.
  restore?(ctx: InitContext, config: Config, bytes: Uint8Array): Promise<NoInfer<State>> | NoInfer<State>;
  snapshot?(state: NoInfer<State>): unknown;
  shutdown?(state: NoInfer<State>, ctx: InitContext): Promise<void> | void;
}

/** A type whose state and code live in a program of its own, in any language: see docs/host-protocol.md. */
export function defineSession<
  Calls extends Record<string, AnyCall>,
  C = undefined,
  CS extends Schema | undefined = undefined,
>(
  name: string,
  spec: SessionTypeOptions & {
    isolation: "process";
    command: HostCommand;
    config?: CS;
    calls: Calls;
    /** The program can write checkpoints and restore them. */
    checkpoint?: boolean;
    /** The program has a snapshot for people. */
    snapshot?: boolean;
    init?: undefined;
  },
): SessionDefinition<unknown, CS extends Schema ? SchemaIn<CS> : C, Calls>;
/**
 * A type of session: `init` makes a state that lives in a worker's memory, `calls` work on it.
 *
 * @example
 * ```ts
 * export const counter = defineSession("counter", {
 *   config: z.object({ from: z.number() }),
 *   init: async (_ctx, { from }) => ({ n: from }),
 *   calls: { add: call({ input: z.number(), run: async (state, by) => (state.n += by) }) },
 * });
 * ```
 */
export function defineSession<
  State,
  Calls extends Record<string, AnyCall>,
  CS extends Schema | undefined = undefined,
  C = undefined,
>(
  name: string,
  spec: { config?: CS } & SessionCode<State, CS extends Schema ? SchemaOut<CS> : C, Calls>,
): SessionDefinition<State, CS extends Schema ? SchemaIn<CS> : C, Calls>;
export function defineSession(
  name: string,
  spec: SessionTypeOptions &
    Partial<Pick<SessionDefinition, "init" | "share" | "restore" | "shutdown">> & {
      config?: Schema;
      calls: Record<string, AnyCall> | ((make: typeof call) => Record<string, AnyCall>);
      checkpoint?: SessionDefinition["checkpoint"] | boolean;
      snapshot?: SessionDefinition["snapshot"] | boolean;
    },
): SessionDefinition {
  const { config, init, share, calls: given, checkpoint, restore, snapshot, shutdown, ...options } = spec;
  const calls = typeof given === "function" ? given(call) : given;
  requireName("session", name);
  refuseUnknownOptions(`session "${name}"`, spec, sessionOptionNames);
  refuseUnknownOptions(`host of session "${name}"`, spec.host, hostOptionNames);
  const hosted = spec.command !== undefined;
  const names = Object.keys(calls);
  const hasCode = (callName: string) => calls[callName]?.run !== undefined;
  checkHosting(name, spec, {
    withCode: names.filter(hasCode),
    without: names.filter((callName) => !hasCode(callName)),
  });
  checkSpec(name, hosted ? { ...spec, restore: spec.checkpoint } : spec, names);
  checkSessionType(name, spec, calls);
  const own = <F extends (...args: never[]) => unknown>(code: F | boolean | undefined): F | undefined =>
    typeof code === "function" ? code : undefined;
  const { threads = 1 } = options;
  return {
    [brand]: "session",
    name,
    // By default as many calls run at once as there are threads.
    options: threads > 1 ? { concurrency: threads, ...options } : options,
    config,
    calls,
    init: init ?? inHostProgram,
    share,
    checkpoint: checkpoint === true ? inHostProgram : own(checkpoint),
    restore: hosted && checkpoint === true ? inHostProgram : restore,
    snapshot: snapshot === true ? inHostProgram : own(snapshot),
    shutdown,
  };
}

/** Takes the place of code that is in a program of its own. The worker asks that program and never calls this. */
const inHostProgram = (): never => {
  throw new Fault("bug", { code: "hosted_elsewhere", message: "this code is in the program of its host" });
};

/** Property names of a session handle: a call of the same name would be hidden. */
const reserved = new Set([
  "id",
  "info",
  "run",
  "close",
  "setMetadata",
  "token",
  "then",
  "constructor",
  "type",
]);

function checkSpec(
  name: string,
  spec: SessionTypeOptions & { checkpoint?: unknown; restore?: unknown },
  calls: string[],
) {
  const refuse = (message: string) => {
    throw new Fault("config", {
      code: "invalid_session_definition",
      message: `session "${name}": ${message}`,
    });
  };
  if (name === bareSessionType) refuse(`the name "${bareSessionType}" is taken by sessions without a type`);
  for (const callName of calls) {
    if (reserved.has(callName)) refuse(`a call may not be named "${callName}"`);
    if (!tokenPattern.test(callName)) refuse(`call name "${callName}" must be ${tokenRule}`);
  }
  if (spec.checkpointEvery !== undefined && !spec.checkpoint) refuse("checkpointEvery needs checkpoint");
  const ms = (what: "creationTimeout" | "executionTimeout" | "idleTimeout") => {
    const value = spec[what];
    return value === undefined ? undefined : parseDuration(value, `${what} of session "${name}"`);
  };
  const executionMs = ms("executionTimeout") ?? Number.POSITIVE_INFINITY;
  for (const what of ["creationTimeout", "idleTimeout"] as const) {
    const longer = (ms(what) ?? 0) > executionMs;
    if (longer) refuse(`${what} (${ms(what)} ms) is longer than executionTimeout (${executionMs} ms)`);
  }
  if (spec.checkpoint && !spec.restore) refuse("checkpoint needs restore");
  if (spec.restore && !spec.checkpoint) refuse("restore needs checkpoint");
}
