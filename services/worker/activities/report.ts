/**
 * Reports the outcome of a task to its instance. A report that was not confirmed is sent again until it is
 * (BUS-1): the message id makes repeats one report. The task is acknowledged only after that, so nothing is
 * lost if the worker dies in between. The result of a lane task goes back by the lane first; if the owner
 * does not confirm that it is recorded, it goes to the inbox too.
 */
import type { ActivityReport, ActivityTask } from "../../../schemas/index.ts";
import { activityReportId, encode, publishUntilStored } from "../../../shared/bus/index.ts";
import { announceFault } from "../../../shared/runtime/index.ts";
import type { SessionAtPoint } from "../../fault-points.ts";
import type { ReplyPath } from "../lane/index.ts";
import type { TaskDeps } from "./running/run-task.ts";
import type { ReportedOutcome } from "./running/task-outcome.ts";

export type Report = ActivityReport["result"];

/** `recorded`: in the history. `stored`: in the inbox, to be recorded later. `given_up`: not delivered. */
export type Reported = "recorded" | "stored" | "given_up";

interface ReportOptions {
  /** The epoch under which a session's work was done. */
  epoch?: number | undefined;
  /** The session that did it. */
  session?: SessionAtPoint | undefined;
  /** Set if the task came by the lane. */
  lane?: ReplyPath | undefined;
  /** Aborts when the process is stopping: no further try is made, and another worker gets the task. */
  signal?: AbortSignal | undefined;
}

const backoff = { initialMs: 100, maxMs: 5_000, factor: 2 };

export async function publishReport(
  deps: TaskDeps,
  task: Pick<ActivityTask, "instanceId" | "execution" | "of" | "attempt" | "capability">,
  result: Report,
  { epoch, session, lane, signal }: ReportOptions = {},
): Promise<Reported> {
  const { bus, names, runtime, identity } = deps;
  const { instanceId, execution, of, attempt, capability } = task;
  const report: ActivityReport = { v: 1, execution, of, attempt, workerId: identity.workerId, result };
  if (capability !== undefined) report.capability = capability; // C1
  if (epoch !== undefined) report.epoch = epoch;
  const msgId = activityReportId(task, result.kind, epoch);
  const what = epoch === undefined ? "activity" : "call";
  deps.faultPoints?.reach(`${what}.before_report`, session);
  if (await lane?.report(instanceId, report)) {
    deps.faultPoints?.reach(`${what}.after_report`, session);
    return "recorded";
  }
  const subject = names.verb(instanceId, "activity");
  const body = encode(report);
  let tries = 0;
  const until = {
    ...{ bus, runtime, backoff, signal },
    // One try in any case: the process may be stopping, but the report exists.
    mayTry: () => tries++ === 0 || !signal?.aborted,
    onFault: (error: unknown) => {
      announceFault(runtime, "worker.report", error, { otherwise: "report_failed" });
    },
  };
  const stored = await publishUntilStored(until, subject, body, { msgId, original: "unseen" });
  if (!stored) return "given_up";
  deps.faultPoints?.reach(`${what}.after_report`, session);
  return "stored";
}

export function reportOf(outcome: ReportedOutcome): Report {
  switch (outcome.kind) {
    case "completed":
      return { kind: "completed", output: outcome.output };
    case "failed":
    case "timeout":
      return { kind: "failed", error: outcome.error };
    case "state_missing":
      return { kind: "state_missing", message: outcome.message };
  }
}
