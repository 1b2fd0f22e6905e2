/**
 * Tells the instance what became of a task. A report that was not confirmed is sent again until it is (BUS-1): the message
 * id makes that one report. Only then the task is acknowledged, so nothing is lost by a death in between.
 * What came by the lane is answered by the lane first; if its owner does not say that it is recorded, it is stored too.
 */
import type { ActivityReport, ActivityTask } from "../../../schemas/index.ts";
import { encode } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { backoffMs, jittered, sleep } from "../../../shared/runtime/index.ts";
import type { LanePath } from "../lane/index.ts";
import type { TaskDeps } from "./run-task.ts";
import type { ReportedOutcome } from "./task-outcome.ts";

export type Report = ActivityReport["result"];

/** `recorded`: in the history. `stored`: in the inbox, and will be. `given_up`: nobody knows it. */
export type Reported = "recorded" | "stored" | "given_up";

export interface ReportOptions {
  /** Under which right a session's work was done. */
  epoch?: number | undefined;
  /** Present where the task came by the lane. */
  lane?: LanePath | undefined;
  /** Gives up trying: the process is going, somebody else gets the task. */
  signal?: AbortSignal | undefined;
}

const backoff = { initialMs: 100, maxMs: 5_000, factor: 2 };

export async function publishReport(
  deps: TaskDeps,
  task: Pick<ActivityTask, "instanceId" | "execution" | "of" | "attempt">,
  result: Report,
  { epoch, lane, signal }: ReportOptions = {},
): Promise<Reported> {
  const { bus, names, runtime, identity } = deps;
  const { instanceId, execution, of, attempt } = task;
  const report: ActivityReport = { v: 1, execution, of, attempt, workerId: identity.workerId, result };
  if (epoch !== undefined) report.epoch = epoch;
  // With the epoch: the same attempt may be made again under the next one, and that report is another.
  const right = epoch === undefined ? "" : `-e${epoch}`;
  const msgId = `act-${instanceId}-${execution}-${of}-${attempt}${right}-${result.kind}`;
  const what = epoch === undefined ? "activity" : "call";
  deps.faultPoints?.reach(`${what}.before_report`);
  if (await lane?.tell(instanceId, report)) {
    deps.faultPoints?.reach(`${what}.after_report`);
    return "recorded";
  }
  const subject = names.verb(instanceId, "activity");
  const body = encode(report);
  for (let tried = 1; ; tried++) {
    try {
      const outcome = await bus.publish(subject, body, { msgId });
      if (outcome.kind === "stored") {
        deps.faultPoints?.reach(`${what}.after_report`);
        return "stored";
      }
    } catch (error) {
      const code = isFault(error) ? error.code : "report_failed";
      const message = error instanceof Error ? error.message : String(error);
      runtime.announce({ kind: "fault", where: "worker.report", code, message, error });
    }
    const waitMs = jittered(backoffMs(backoff, tried), runtime.random);
    if (signal?.aborted || (await sleep(runtime.clock, waitMs, signal)) === "aborted") return "given_up";
  }
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
