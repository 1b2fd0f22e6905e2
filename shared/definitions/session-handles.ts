/** Sessions and pools as orchestration code uses them: options to open one, and handles to call it. */
import type { OnLost, SessionState } from "../../schemas/index.ts";
import type { Duration } from "../runtime/index.ts";
import type { ActivityDefinition, ActivityOptions, AnyActivity } from "./activity.ts";
import type { InputArguments, InputOf, OutputOf } from "./arguments.ts";
import type { AnySession, Call, CallsOf } from "./session.ts";

/**
 * How a session is opened: its config, its times, what happens when its worker is lost, and where it may run.
 *
 * @example
 * ```ts
 * await using session = await ctx.openSession(classifier, { config: { model }, onLost: "reclaim" });
 * ```
 */
export interface OpenSessionOptions<Config = unknown> {
  /** Unique in the installation. Default: derived from the instance. */
  id?: string;
  /** The argument of `init`; checked by the type's `config` schema. */
  config?: Config;
  /** How long the opening may take, with all tries of `init`. Default: the type's, otherwise 30 s. */
  creationTimeout?: Duration;
  /** Longest life of the session, whatever happens. */
  executionTimeout?: Duration;
  /**
   * Parks the session after this long without a call; without a checkpoint `init` makes its state anew. 0:
   * never.
   */
  idleTimeout?: Duration;
  /** How soon a silent holder loses the session, in whole seconds. Default: the worker's setting. */
  leaseTtl?: Duration;
  /** What happens when the holder is lost. Default `fail`, or `rebuild` if `recovery.rebuild` is set. */
  onLost?: OnLost;
  recovery?: {
    /** For `onLost: "rebuild"`: runs once per attachment before any call. */
    rebuild?: { activity: ActivityDefinition<never, unknown> | string; input?: unknown };
    /** How often one interrupted call is tried again. Default 3. */
    maxAutoRetries?: number;
  };
  /** What the worker must have or run; added to the type's `requires`. */
  placement?: {
    tags?: string[];
    resources?: Record<string, number>;
    buildId?: string;
    affinityKey?: string;
  };
  /** How often `init` may fail or be lost before the opening fails. Default 3. */
  maxInitAttempts?: number;
  /** Names and values to find the session by; code inside the session may change them. */
  metadata?: Record<string, string>;
  /** Return at once, and claim a worker at the first call. */
  lazy?: boolean;
  /**
   * For a session without a type: how many activities run on it at a time. Default: as many as its holder has
   * call slots for; 1: in the order they were issued. A type sets its own.
   */
  concurrency?: number;
  /**
   * While a quota of the installation is reached: wait for a seat (default), or fail with
   * SessionQuotaExceeded at once.
   */
  whenFull?: "wait" | "fail";
}

/** The state of a session; `pool` for the handle of a pool. */
export type SessionStateName = SessionState["phase"]["kind"] | "pool";

/** The holder of a session, its epoch and its state. */
export interface SessionInfo {
  readonly id: string;
  readonly type: string;
  readonly state: SessionStateName;
  readonly epoch: number | undefined;
  readonly attachment: number | undefined;
  readonly workerId: string | undefined;
  readonly host: string | undefined;
  readonly resourceId: string | undefined;
  /**
   * How often `init` made its state. More than 1: the contents of an earlier state are gone (after a loss, or
   * an idle timeout that the user set).
   */
  readonly inits: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A session without a type: a worker that activities come back to. */
export interface BareSessionHandle extends AsyncDisposable {
  readonly id: string;
  readonly info: SessionInfo;
  /** Runs an activity on the worker that holds the session. */
  run<A extends AnyActivity>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, ActivityOptions>
  ): Promise<OutputOf<A>>;
  /** Closes the session, or gives it back if it is borrowed. `await using` calls it. */
  close(): Promise<void>;
  /** Sets the given names and removes those whose value is null. Only on the instance's own session. */
  setMetadata(change: Readonly<Record<string, string | null>>): void;
  /** A token that names the resource; `ctx.recreateSession(token)` opens a session on the same one. */
  token(): string;
}

/** An open session: its calls by name, `run` for activities, `close`, and its `info`. */
export type SessionHandle<D extends AnySession> = BareSessionHandle & {
  readonly [K in keyof CallsOf<D>]: CallsOf<D>[K] extends Call<infer _S, infer I, infer O>
    ? (...rest: InputArguments<I, Omit<ActivityOptions, "queue">>) => Promise<O>
    : never;
};

/** How big a pool may get, how its members are shared, and how long they stay. */
export interface PoolOptions<Config = unknown> {
  /** Pools of the same type and config are one pool for all users; a name of your own keeps two apart. */
  id?: string;
  /** Members kept warm while the pool has a user. Default 1. */
  min?: number;
  /**
   * The pool grows up to this size while calls or borrowers wait, and shrinks when members idle. Default 4.
   */
  max?: number;
  /** How long members stay after the last user has left, in case the next one comes. Default 60 s. */
  linger?: Duration;
  /** `exclusive`: one member for yourself, as a session, until you close it; waits while all are lent. */
  sharing?: "exclusive" | "shared";
  config?: Config;
}
