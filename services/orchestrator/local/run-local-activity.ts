/** Runs a local activity once, from input to result. An error thrown by user code becomes a failed result. */
import type { ActivityReport, Failure } from "../../../schemas/index.ts";
import { type ActivityContext, type AnyActivity, validate } from "../../../shared/definitions/index.ts";
import { failureOf, HoldfastError, isFault, TimeoutError, toFailure } from "../../../shared/errors/index.ts";
import { type OpenTask, watched } from "../../../shared/replay/index.ts";
import { insideTrace } from "../../../shared/runtime/trace.ts";
import type { OrchestratorDeps } from "../deps.ts";

/** What `runLocalActivity` needs of the orchestrator. */
export type LocalDeps = Pick<OrchestratorDeps, "id" | "app" | "payloads" | "runtime">;

type Result = ActivityReport["result"];

interface About {
  readonly instanceId: string;
  readonly traceparent: string | undefined;
  /** Aborted when the instance no longer waits for the activity, and when its time is over. */
  readonly abort: AbortController;
}

export async function runLocalActivity(deps: LocalDeps, task: OpenTask, about: About): Promise<Result> {
  const { payloads, app } = deps;
  const { name } = task;
  try {
    const activity = app.activities.get(name);
    if (!activity) throw unknownActivity(name, [...app.activities.keys()]);
    const input = "json" in task.input ? task.input.json : await payloads.unwrap(task.input);
    const checked = validate(activity.input, input, "invalid_input", `input of "${name}"`);
    const value = await withinTime(deps, task, about, activity, checked);
    return { kind: "completed", output: await outputOf(deps, about.instanceId, activity, value) };
  } catch (error) {
    return { kind: "failed", error: failureOf(error) };
  }
}

/** Rejects when the time limit of this run is over, whatever the code is doing. */
function withinTime(
  deps: LocalDeps,
  task: OpenTask,
  about: About,
  activity: AnyActivity,
  input: unknown,
): Promise<unknown> {
  const { clock } = deps.runtime;
  const { abort, instanceId, traceparent } = about;
  const limit = limitOf(task, clock.now());
  return new Promise((resolve, reject) => {
    const timer =
      limit &&
      clock.after(limit.leftMs, () => {
        const error = new TimeoutError(tooLong(task.name, limit));
        abort.abort(error);
        reject(error);
      });
    const over = () => timer?.cancel();
    try {
      const context = contextOf(deps, task, about);
      const returned = watched(instanceId, () =>
        insideTrace(traceparent, instanceId, () => activity.run(context, input)),
      );
      Promise.resolve(returned).finally(over).then(resolve, reject);
    } catch (error) {
      over();
      reject(error);
    }
  });
}

async function outputOf(
  { payloads }: LocalDeps,
  instanceId: string,
  { name, output }: AnyActivity,
  value: unknown,
) {
  try {
    const checked = validate(output, value, "invalid_output", `output of "${name}"`);
    return payloads.wrapSync(checked) ?? (await payloads.wrap(checked, instanceId));
  } catch (error) {
    // Another attempt would only produce the same value.
    if (isFault(error, "transient")) throw error;
    const { code, message, details } = toFailure(error);
    throw new HoldfastError({ code, message, details, retryable: false, cause: error });
  }
}

function contextOf({ id, runtime }: LocalDeps, task: OpenTask, about: About): ActivityContext {
  const { name, attempt, id: of } = task;
  const { instanceId } = about;
  const say =
    (level: "debug" | "info" | "warn" | "error") => (message: string, fields?: Record<string, unknown>) =>
      runtime.announce({
        kind: "work.log",
        ...{ instanceId, name, of, attempt, level, message },
        ...(fields ? { fields } : {}),
      });
  return {
    instanceId,
    name,
    attempt,
    workerId: id,
    worker: undefined,
    signal: about.abort.signal,
    heartbeat: () => undefined,
    lastHeartbeat: undefined,
    session: undefined,
    stream: {
      write: () =>
        Promise.reject(
          new HoldfastError({
            code: "not_on_a_worker",
            message: `activity "${name}" runs locally, where there is no stream: run it with ctx.run`,
            retryable: false,
          }),
        ),
    },
    log: { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") },
  };
}

interface Limit {
  timeout: "start_to_close" | "schedule_to_close";
  ms: number;
  leftMs: number;
}

/** The time limit that ends first. */
function limitOf({ timeouts, scheduledAt }: OpenTask, now: number): Limit | undefined {
  const { startToCloseMs, scheduleToCloseMs } = timeouts;
  const limits: Limit[] = [];
  if (startToCloseMs !== undefined)
    limits.push({ timeout: "start_to_close", ms: startToCloseMs, leftMs: startToCloseMs });
  if (scheduleToCloseMs !== undefined) {
    const leftMs = Math.max(0, scheduledAt + scheduleToCloseMs - now);
    limits.push({ timeout: "schedule_to_close", ms: scheduleToCloseMs, leftMs });
  }
  return limits.sort((a, b) => a.leftMs - b.leftMs)[0];
}

const tooLong = (name: string, { timeout, ms }: Limit): Failure => ({
  code: "timeout",
  message: `${name} did not finish within ${ms} ms`,
  retryable: timeout === "start_to_close",
  details: { timeout },
});

const unknownActivity = (name: string, names: readonly string[]): HoldfastError =>
  new HoldfastError({
    code: "unknown_activity",
    message: `no activity named "${name}" in the orchestrator's application; there are: ${names.join(", ") || "none"}`,
    retryable: false,
    details: { name, names },
  });
