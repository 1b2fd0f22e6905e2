import { Fault } from "../errors/index.ts";
import { type Duration, parseDuration } from "../runtime/index.ts";
import { brand, requireName } from "./brand.ts";
import { requireTags } from "./check-session-type.ts";
import { activityOptionNames, refuseUnknownOptions, retryOptionNames } from "./option-names.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

/** How often and how fast a failed attempt is repeated, and which errors are final. */
export interface RetryOptions {
  /** Including the first. 1: no retry. Default 3 for activities and calls of pools, 1 for calls of a session. */
  maxAttempts?: number;
  /** Delay before the second attempt. Default 200 ms. */
  initialDelay?: Duration;
  /** No delay is longer. Default 30 s. */
  maxDelay?: Duration;
  /** Each delay is this many times the one before. Default 2. */
  factor?: number;
  /** Error codes (or class names) that end the retries at once. */
  nonRetryable?: string[];
}

/** Each timeout fails with code `timeout`; those of one run, start-to-close and heartbeat, are retried. */
export interface ActivityOptions {
  /** The queue it is scheduled on: served by all workers, or by those whose `WORKER_QUEUES` names it. */
  queue?: string;
  /** How a failed attempt is repeated. */
  retry?: RetryOptions;
  /** How long an attempt may wait for a worker. */
  scheduleToStart?: Duration;
  /** How long one run may take. */
  startToClose?: Duration;
  /** How long all attempts may take together, with the time between them. */
  scheduleToClose?: Duration;
  /**
   * How long a run may go without a heartbeat, in whole seconds. It detects a worker that is paused or cut
   * off; a worker that died is detected without it.
   */
  heartbeatTimeout?: Duration;
}

/** Options of one `ctx.run`. */
export interface RunOptions extends ActivityOptions {
  /**
   * The worker that holds this session is asked first, because its caches may help. If it is busy, gone or
   * does not serve the activity, any other worker runs it.
   */
  preferWorkerOf?: { readonly id: string };
}

/** Requirements that a worker must meet to run an activity. */
export interface ActivityRequirements {
  /** Only workers with all of these tags (`WORKER_TAGS`) run it. */
  tags?: string[];
}

/**
 * Options of an activity that `ctx.local` runs in the orchestrator's process: there is no queue and no
 * heartbeat.
 */
export interface LocalOptions {
  retry?: RetryOptions;
  /** How long one run may take. Default 10 s: longer work belongs on a worker. */
  startToClose?: Duration;
  /** How long all attempts may take together, with the time between them. */
  scheduleToClose?: Duration;
}

/** How often an activity may begin, over all workers: a token bucket. */
export interface RateLimit<I = unknown> {
  limit: number;
  per: Duration;
  /** How many may begin at once after a pause. Default 1: evenly spaced. */
  burst?: number;
  /** Each key has a bucket of its own. */
  key?: (input: I) => string;
  /**
   * `queue`: all activities of the queue with this setting share one bucket. Default: each activity has its
   * own.
   */
  of?: "activity" | "queue";
}

/** A blob that a session keeps under a name. */
export interface BlobInfo {
  name: string;
  bytes: number;
  storedAt: number;
}

/**
 * Bytes that the code of a session keeps under names, such as compiled programs or intermediate results. They
 * survive the loss of the holder and go with the session.
 */
export interface SessionBlobs {
  /** Resolves once the bytes are stored for good: the next holder has them. Replaces a blob of the same name. */
  put(name: string, data: Uint8Array): Promise<BlobInfo>;
  /** Undefined if no blob has this name. */
  get(name: string): Promise<Uint8Array | undefined>;
  /** False if no blob has this name. */
  delete(name: string): Promise<boolean>;
  /** All blobs, the oldest first. */
  list(): Promise<BlobInfo[]>;
}

/** The session as code inside it sees it. The epoch is a fencing token for the outside world. */
export interface SessionView {
  readonly id: string;
  readonly type: string;
  readonly epoch: number;
  readonly attachment: number;
  readonly workerId: string;
  /** The machine of its holder. */
  readonly host: string;
  /** The resource that a token of this session names (`session.token()`). */
  readonly resourceId: string;
  /** The metadata at the time of the claim, with the changes made by code inside the session since. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Sets the given names and removes those whose value is null. The instance sees the change a little later. */
  setMetadata(change: Readonly<Record<string, string | null>>): void;
  readonly blobs: SessionBlobs;
  /** Gives the session up: its instance sees it as lost, reason `aborted`. */
  abort(reason: string): void;
  /** Messages sent with `client.session(id).send`. */
  readonly events: AsyncIterable<{ name: string; payload: unknown }>;
}

/** The worker that runs the code. */
export interface WorkerView {
  readonly id: string;
  /** The worker's machine. */
  readonly host: string;
  /** WORKER_RESOURCE_ID: the machine, GPU or disk it works on. */
  readonly resourceId: string;
}

/** A log whose lines carry the ids of the work they are about. */
export interface WorkLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Writes chunks that clients read live, and again from any offset. */
export interface StreamWriter {
  /** Writes one chunk; `client.stream(instanceId)` reads it live, and from an offset. */
  write(chunk: unknown): Promise<void>;
}

/**
 * The context of an activity: its instance, the attempt, a signal that aborts, heartbeats, a stream and a
 * log.
 */
export interface ActivityContext {
  readonly instanceId: string;
  /** Name of the activity or call. */
  readonly name: string;
  /** From 1. */
  readonly attempt: number;
  readonly workerId: string;
  /** Undefined if no worker runs it (`ctx.local`). */
  readonly worker: WorkerView | undefined;
  /** Aborts on cancellation, timeout, loss of the session, or shutdown of the worker. */
  readonly signal: AbortSignal;
  /** Reports that the work is alive; the details reach the next attempt. */
  heartbeat(details?: unknown): void;
  /** Heartbeat details of the previous attempt. */
  readonly lastHeartbeat: unknown;
  /** Set if the activity runs on a session. */
  readonly session: SessionView | undefined;
  readonly stream: StreamWriter;
  readonly log: WorkLog;
}

/** An activity as `defineActivity` returns it. */
export interface ActivityDefinition<I = unknown, O = unknown> {
  readonly [brand]: "activity";
  readonly name: string;
  readonly options: ActivityOptions;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly rate: RateLimit<I> | undefined;
  /** Tags a worker must have; empty: any worker. */
  readonly tags: readonly string[];
  run(ctx: ActivityContext, input: I): Promise<O> | O;
}

/** An activity of any input and output. */
// biome-ignore lint/suspicious/noExplicitAny: a bag of definitions of every type; `unknown` is not assignable both ways
export type AnyActivity = ActivityDefinition<any, any>;

/**
 * Defines an activity: ordinary code with side effects that a worker runs, again if it fails.
 *
 * @example
 * ```ts
 * export const resize = defineActivity("resize", {
 *   input: z.object({ url: z.string() }),
 *   run: async (ctx, { url }) => resizeImage(url, ctx.signal),
 * });
 * ```
 */
export function defineActivity<
  I = unknown,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
>(
  name: string,
  spec: {
    input?: IS;
    output?: OS;
    rate?: RateLimit<IS extends Schema ? SchemaOut<IS> : I>;
    requires?: ActivityRequirements;
    run(
      ctx: ActivityContext,
      input: IS extends Schema ? SchemaOut<IS> : I,
    ): Promise<OS extends Schema ? SchemaIn<OS> : O> | (OS extends Schema ? SchemaIn<OS> : O);
  } & ActivityOptions,
): ActivityDefinition<IS extends Schema ? SchemaIn<IS> : I, OS extends Schema ? SchemaOut<OS> : O> {
  refuseUnknownOptions(`activity "${name}"`, spec, {
    ...activityOptionNames,
    input: true,
    output: true,
    run: true,
    rate: true,
    requires: true,
  });
  refuseUnknownOptions(`retry of activity "${name}"`, spec.retry, retryOptionNames);
  const { input, output, run, rate, requires, ...options } = spec;
  if (rate) checkRate(name, rate);
  refuseUnknownOptions(`requires of activity "${name}"`, requires, { tags: true });
  return {
    [brand]: "activity",
    name: requireName("activity", name),
    options,
    input,
    output,
    rate: rate as RateLimit | undefined,
    tags: tagsOf(name, requires?.tags ?? []),
    run: run as ActivityDefinition["run"],
  } as ActivityDefinition<IS extends Schema ? SchemaIn<IS> : I, OS extends Schema ? SchemaOut<OS> : O>;
}

const tagsOf = (name: string, tags: unknown): string[] =>
  requireTags("requires.tags", tags, (message) => {
    throw new Fault("config", {
      code: "invalid_activity_definition",
      message: `activity "${name}": ${message}`,
    });
  });

function checkRate(name: string, { limit, per, burst = 1 }: Omit<RateLimit, "key">): void {
  const refuse = (message: string) => {
    throw new Fault("config", {
      code: "invalid_activity_definition",
      message: `activity "${name}": ${message}`,
    });
  };
  if (!Number.isInteger(limit) || limit < 1)
    refuse(`rate.limit must be a whole number above 0, not ${limit}`);
  if (!Number.isInteger(burst) || burst < 1)
    refuse(`rate.burst must be a whole number above 0, not ${burst}`);
  if (parseDuration(per, `rate.per of activity "${name}"`) < 1) refuse("rate.per must be at least 1 ms");
}
