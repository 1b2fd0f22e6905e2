/**
 * The local activities of one instance: what `ctx.local` asked for, run in this process between its turns.
 *
 * LOCAL-1 An activity that is open in the instance's state and due runs here, once per attempt; one that is
 *    no longer open is aborted. This is checked after every turn, so it does not matter why an activity is
 *    open: just asked for, left by an owner that died, or due for its next attempt.
 * LOCAL-2 An inbox message that is kept unacknowledged (the anchor of the lane), or a durable schedule of
 *    its event, stands for a running activity: one of them brings the instance to the next owner if this
 *    process dies.
 * LOCAL-3 The report of an activity is mail of the instance like a worker's. The first completion of the
 *    current attempt wins (T5).
 * LOCAL-4 An activity that runs ahead of its commit (run-ahead.ts) counts only once that commit is stored:
 *    its report is part of the same commit or waits for it, and is dropped with a commit that was not
 *    stored.
 */
import type { ActivityReport, EventId, WorkerId } from "../../../schemas/index.ts";
import { CancelledError } from "../../../shared/errors/index.ts";
import type { InstanceState, OpenTask } from "../../../shared/replay/index.ts";
import type { Timer } from "../../../shared/runtime/index.ts";
import { type LocalDeps, runLocalActivity } from "./run-local-activity.ts";

interface Run {
  readonly execution: number;
  readonly attempt: number;
  /** Undefined while the run waits for its due time. */
  abort: AbortController | undefined;
  waiting: Timer | undefined;
  /** True while the commit that asks for this activity is not stored (LOCAL-4). */
  ahead: boolean;
  /**
   * The result; kept until the instance has recorded it, so that the activity is not begun again meanwhile
   * (LOCAL-1).
   */
  report: ActivityReport | undefined;
}

export class LocalWork {
  readonly #deps: LocalDeps;
  readonly #onReport: (report: ActivityReport) => void;
  readonly #runs = new Map<number, Run>();
  #onOver: (() => void) | undefined;

  constructor(deps: LocalDeps, onReport: (report: ActivityReport) => void) {
    this.#deps = deps;
    this.#onReport = onReport;
  }

  /** True if no activity runs, waits to run, or waits for its result to be recorded. */
  get idle(): boolean {
    return this.#runs.size === 0;
  }

  /** Called after each turn (LOCAL-1). */
  follow(state: Readonly<InstanceState>): void {
    for (const [id, run] of this.#runs) {
      if (!isFor(run, state, state.tasks.get(id))) this.#end(id, run, "cancelled");
      else if (run.ahead) {
        run.ahead = false;
        if (run.report) this.#onReport(run.report);
      }
    }
    for (const task of state.tasks.values()) {
      if (task.target.kind === "local" && !this.#runs.has(task.id)) this.#begin(state, task, false);
    }
  }

  /**
   * Begins the open activities before their commit is stored. Returns the reports of those that end within
   * `ms`; empty if none did.
   */
  async ahead(state: Readonly<InstanceState>, ms: number): Promise<ActivityReport[]> {
    for (const task of state.tasks.values()) {
      const { target, attempt, id } = task;
      if (target.kind === "local" && attempt === 1 && !this.#runs.has(id)) this.#begin(state, task, true);
    }
    const begun = [...this.#runs].filter(([, { ahead }]) => ahead);
    if (begun.length > 0 && begun.every(([, { report }]) => !report)) await this.#oneOver(ms);
    return begun.flatMap(([id, { report }]) => {
      if (report) this.#runs.delete(id);
      return report ?? [];
    });
  }

  /** The commit was not stored: the activities that it asked for are dropped (LOCAL-4). */
  dropAhead(): void {
    for (const [id, run] of this.#runs) if (run.ahead) this.#end(id, run, "its turn was not recorded");
  }

  #oneOver(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel();
        this.#onOver = undefined;
        resolve();
      };
      const timer = this.#deps.runtime.clock.after(ms, end);
      this.#onOver = end;
    });
  }

  #over(id: number, run: Run, report: ActivityReport): void {
    if (this.#runs.get(id) !== run) return; // the instance no longer waits for this run
    run.report = report;
    if (run.ahead) this.#onOver?.();
    else this.#onReport(report);
  }

  /** Called when another orchestrator owns the partition; that one runs the open activities again. */
  letGo(): void {
    for (const [id, run] of this.#runs) this.#end(id, run, "the orchestrator gave its partition up");
  }

  #end(id: number, { abort, waiting, report }: Run, reason: string): void {
    this.#runs.delete(id);
    waiting?.cancel();
    if (!report) abort?.abort(new CancelledError(reason));
  }

  #begin(
    { instanceId, execution, traceparent }: Readonly<InstanceState>,
    task: OpenTask,
    ahead: boolean,
  ): void {
    const { clock } = this.#deps.runtime;
    const { attempt } = task;
    const run: Run = { execution, attempt, abort: undefined, waiting: undefined, ahead, report: undefined };
    this.#runs.set(task.id, run);
    const start = () => {
      run.waiting = undefined;
      run.abort = new AbortController();
      const about = { instanceId, traceparent, abort: run.abort };
      void runLocalActivity(this.#deps, task, about).then((result) =>
        this.#over(task.id, run, {
          v: 1,
          execution,
          of: task.id as EventId,
          attempt,
          workerId: this.#deps.id as WorkerId,
          result,
        }),
      );
    };
    // Time in a history may be ahead of this clock: a first attempt is due at once, whatever the clock says.
    const waitMs = task.attempt === 1 ? 0 : task.readyAt - clock.now();
    if (waitMs > 0) run.waiting = clock.after(waitMs, start);
    else start();
  }
}

const isFor = (
  { execution, attempt }: Run,
  state: Readonly<InstanceState>,
  task: OpenTask | undefined,
): boolean => task !== undefined && state.execution === execution && task.attempt === attempt;
