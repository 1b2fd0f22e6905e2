/**
 * One run of a task, from its input to its outcome: check the input, run user code, check the output, wrap
 * it. Used for plain activities and for calls of sessions. It publishes nothing but heartbeats and stream
 * chunks, and settles no delivery.
 *
 * User code causes no exception here: anything it throws or returns becomes an outcome.
 */
import type { ActivityTask, Failure } from "../../../../schemas/index.ts";
import {
  type ActivityContext,
  type Schema,
  type SessionView,
  validate,
} from "../../../../shared/definitions/index.ts";
import {
  failureOf,
  isCancelled,
  isFault,
  isSessionLost,
  TimeoutError,
} from "../../../../shared/errors/index.ts";
import { beatAddress, silenceFailure } from "../../../../shared/leases/index.ts";
import { insideTrace } from "../../../../shared/runtime/trace.ts";
import type { WorkerDeps } from "../../deps.ts";
import type { LazyAbort } from "../../lazy-abort.ts";
import { SerializedJson } from "../../serialized-json.ts";
import { waitForStore } from "../../wait-for-store.ts";
import { WorkContext } from "../../work-context.ts";
import { BeatKey } from "./beat-key.ts";
import { callUserCode, type Settled, type UserCall } from "./call-user-code.ts";
import { forgetHeartbeat, Pulse, readHeartbeat, writeEveryMs } from "./heartbeats.ts";
import type { TaskOutcome } from "./task-outcome.ts";
import { type StreamSink, TaskStream } from "./task-stream.ts";

export type TaskDeps = Pick<
  WorkerDeps,
  "bus" | "names" | "runtime" | "payloads" | "identity" | "faultPoints"
>;

interface TaskRun {
  input?: Schema | undefined;
  output?: Schema | undefined;
  run(ctx: ActivityContext, input: unknown): unknown;
  /**
   * Set if the task runs on a session: a `session_lost` that the code throws means that its state is gone.
   */
  session?: SessionView | undefined;
  /**
   * The signal that user code sees. The caller aborts it to end the run as `interrupted`; a timeout aborts it
   * too, so that abandoned code can stop.
   */
  abort: LazyAbort;
  /**
   * Set if the notice that schedule-to-close is over may be lost: the run then ends by itself. Not set on
   * sessions, where the notice always arrives, and where a call that timed out costs the state.
   */
  scheduleToCloseMs?: number | undefined;
  /** How often the task was delivered; above 1 the run looks up the heartbeat details of the previous run. */
  deliveries: number;
  /** Tells runs of one attempt apart in its stream: the epoch on sessions. Default: deliveries. */
  runNumber?: number;
  /** The run was given up while its code went on; `finished` resolves when the code is over. */
  onAbandoned?: (finished: Promise<unknown>) => void;
}

export async function runTask(deps: TaskDeps, task: ActivityTask, run: TaskRun): Promise<TaskOutcome> {
  try {
    const input =
      "json" in task.input
        ? task.input.json
        : await waitForStore(deps, run.abort.signal, () => deps.payloads.unwrap(task.input));
    const checked = run.input ? validate(run.input, input, "invalid_input", `input of ${task.name}`) : input;
    const again = task.attempt > 1 || run.deliveries > 1;
    const lastHeartbeat = again ? await readHeartbeat(deps, task) : undefined;
    return await runWith(deps, task, run, checked, lastHeartbeat);
  } catch (error) {
    if (run.abort.aborted) return { kind: "interrupted", reason: run.abort.reason };
    // Only errors around user code get here: an input that does not fit, a payload that is not there.
    return { kind: "failed", error: failureOf(error) };
  }
}

async function runWith(
  deps: TaskDeps,
  task: ActivityTask,
  run: TaskRun,
  input: unknown,
  lastHeartbeat: unknown,
): Promise<TaskOutcome> {
  const { runtime, identity } = deps;
  let pulse: Pulse | undefined;
  let stream: StreamSink | undefined;
  let call: UserCall | undefined;
  // On a session, the lease shows the death of the holder.
  const address = run.session ? undefined : beatAddress(task);
  const key = address && new BeatKey(deps, address, writeEveryMs(task));
  const context = new WorkContext({
    task,
    identity,
    abort: run.abort,
    session: run.session,
    lastHeartbeat,
    onHeartbeat: (details) => {
      call?.beat();
      key?.beat();
      (pulse ??= new Pulse(deps, task)).beat(details);
    },
    openStream: () => (stream = new TaskStream(deps, task, run.runNumber ?? run.deliveries)),
    announce: runtime.announce,
  });
  const { startToCloseMs, heartbeatMs } = task.timeouts;
  const limits = { startToCloseMs, heartbeatMs, scheduleToCloseMs: run.scheduleToCloseMs };
  key?.beat();
  call = callUserCode(runtime.clock, run.abort, limits, () =>
    insideTrace(task.traceparent, task.instanceId, () => run.run(context, input)),
  );
  const settled = await call.settled;
  void key?.remove();
  const outcome = await outcomeOf(deps, task, run, settled);
  if (outcome.kind === "timeout") run.abort.abort(new TimeoutError(outcome.error));
  if (outcome.kind === "timeout" || outcome.kind === "interrupted") run.onAbandoned?.(call.finished);
  if (stream) await stream.close();
  const over = isOver(outcome);
  if (pulse) await pulse.close(!over);
  if (over && (pulse?.wrote || lastHeartbeat !== undefined)) forgetHeartbeat(deps, task);
  return outcome;
}

/** True if no later attempt could use this attempt's heartbeat details. */
function isOver(outcome: TaskOutcome): boolean {
  switch (outcome.kind) {
    case "completed":
      return true;
    case "failed":
      return !outcome.error.retryable;
    case "interrupted":
      return isCancelled(outcome.reason);
    case "timeout":
    case "state_missing":
      return false;
  }
}

async function outcomeOf(
  deps: TaskDeps,
  task: ActivityTask,
  run: TaskRun,
  settled: Settled,
): Promise<TaskOutcome> {
  switch (settled.kind) {
    case "returned":
      return completed(deps, task, run, settled.value);
    case "threw":
      if (run.session && isSessionLost(settled.error)) {
        return { kind: "state_missing", message: failureOf(settled.error).message };
      }
      return { kind: "failed", error: failureOf(settled.error) };
    case "start_to_close":
      return timedOut(task, settled.kind, task.timeouts.startToCloseMs);
    case "heartbeat":
      return timedOut(task, settled.kind, task.timeouts.heartbeatMs);
    case "schedule_to_close":
      return timedOut(task, settled.kind, task.timeouts.scheduleToCloseMs);
    case "interrupted":
      return { kind: "interrupted", reason: run.abort.reason };
  }
}

async function completed(
  deps: TaskDeps,
  task: ActivityTask,
  run: TaskRun,
  value: unknown,
): Promise<TaskOutcome> {
  try {
    if (value instanceof SerializedJson)
      return { kind: "completed", output: await serializedOutput(deps, task, run, value) };
    const output = run.output
      ? validate(run.output, value, "invalid_output", `output of ${task.name}`)
      : value;
    const small = deps.payloads.wrapSync(output);
    if (small) return { kind: "completed", output: small };
    const store = () => deps.payloads.wrap(output, task.instanceId);
    return { kind: "completed", output: await waitForStore(deps, run.abort.signal, store) };
  } catch (error) {
    if (isFault(error, "transient")) return { kind: "interrupted", reason: run.abort.reason };
    // Another attempt would only produce the same value.
    return { kind: "failed", error: { ...failureOf(error), retryable: false } };
  }
}

const serializedOutput = (
  deps: TaskDeps,
  { instanceId }: ActivityTask,
  { abort }: TaskRun,
  { json }: SerializedJson,
) =>
  deps.payloads.wrapTextSync(json) ??
  waitForStore(deps, abort.signal, () => deps.payloads.wrapText(json, instanceId));

function timedOut(
  task: ActivityTask,
  timeout: Extract<TaskOutcome, { kind: "timeout" }>["timeout"],
  limitMs: number | undefined,
): TaskOutcome {
  if (timeout === "heartbeat")
    return { kind: "timeout", timeout, error: silenceFailure(task.name, limitMs ?? 0) };
  const error: Failure = {
    code: "timeout",
    message: `${task.name} did not finish within ${limitMs} ms`,
    retryable: timeout !== "schedule_to_close",
    details: { timeout },
  };
  return { kind: "timeout", timeout, error };
}
