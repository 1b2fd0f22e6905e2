import { Fault } from "../errors/index.ts";
import { type Duration, parseDuration } from "../runtime/index.ts";
import { brand, requireName } from "./brand.ts";
import { activityOptionNames, refuseUnknownOptions, retryOptionNames } from "./option-names.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

export interface RetryOptions {
  /** Including the first. 1: no retry. Default 3 for activities, 1 for session calls. */
  maxAttempts?: number;
  initialDelay?: Duration;
  maxDelay?: Duration;
  factor?: number;
  /** Error codes (or class names) that end the retries at once. */
  nonRetryable?: string[];
}

/** Each timeout fails with code `timeout`; those of one run, start-to-close and heartbeat, are retried. */
export interface ActivityOptions {
  /** Which workers take it: all, or those whose `WORKER_QUEUES` names this queue. */
  queue?: string;
  retry?: RetryOptions;
  /** How long an attempt may wait for a worker. */
  scheduleToStart?: Duration;
  /** How long one run may take. */
  startToClose?: Duration;
  /** How long all attempts may take together, with the time between them. */
  scheduleToClose?: Duration;
  /** How long a run may be silent between heartbeats. A worker that died is noticed without it. */
  heartbeatTimeout?: Duration;
}

/** Options of an activity that `ctx.local` runs in the orchestrator's process: there is no queue and no heartbeat. */
export interface LocalOptions {
  retry?: RetryOptions;
  /** How long one run may take. Default 10 s: what takes longer belongs to a worker. */
  startToClose?: Duration;
  /** How long all attempts may take together, with the time between them. */
  scheduleToClose?: Duration;
}

/** How often an activity may begin, over all workers: a token bucket. */
export interface RateLimit<I = unknown> {
  limit: number;
  per: Duration;
  /** So many at once after a pause. Default 1: evenly. */
  burst?: number;
  /** Each key has a bucket of its own. */
  key?: (input: I) => string;
  /** `queue`: all activities of the queue that say so share one bucket. Default: each activity has its own. */
  of?: "activity" | "queue";
}

/** What code inside a session knows about it. The epoch is a fencing token for the outside world. */
export interface SessionView {
  readonly id: string;
  readonly type: string;
  readonly epoch: number;
  readonly attachment: number;
  readonly workerId: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Gives the session up: its instance sees it as lost, reason `aborted`. */
  abort(reason: string): void;
  /** Messages sent with `client.session(id).send`. */
  readonly events: AsyncIterable<{ name: string; payload: unknown }>;
}

export interface WorkLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

export interface StreamWriter {
  /** Readable live and from an offset by `client.stream(instanceId)`. */
  write(chunk: unknown): Promise<void>;
}

export interface ActivityContext {
  readonly instanceId: string;
  readonly name: string;
  readonly attempt: number;
  readonly workerId: string;
  /** Aborts on cancellation, timeout, loss of the session, or shutdown of the worker. */
  readonly signal: AbortSignal;
  /** Says that the work is alive; the details reach the next attempt. */
  heartbeat(details?: unknown): void;
  /** Details of the attempt before. */
  readonly lastHeartbeat: unknown;
  /** Present when run on a session. */
  readonly session: SessionView | undefined;
  readonly stream: StreamWriter;
  readonly log: WorkLog;
}

export interface ActivityDefinition<I = unknown, O = unknown> {
  readonly [brand]: "activity";
  readonly name: string;
  readonly options: ActivityOptions;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly rate: RateLimit<I> | undefined;
  run(ctx: ActivityContext, input: I): Promise<O> | O;
}

// biome-ignore lint/suspicious/noExplicitAny: a bag of definitions of every type; `unknown` is not assignable both ways
export type AnyActivity = ActivityDefinition<any, any>;

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
  });
  refuseUnknownOptions(`retry of activity "${name}"`, spec.retry, retryOptionNames);
  const { input, output, run, rate, ...options } = spec;
  if (rate) checkRate(name, rate);
  return {
    [brand]: "activity",
    name: requireName("activity", name),
    options,
    input,
    output,
    rate: rate as RateLimit | undefined,
    run: run as ActivityDefinition["run"],
  } as ActivityDefinition<IS extends Schema ? SchemaIn<IS> : I, OS extends Schema ? SchemaOut<OS> : O>;
}

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
