/**
 * The local activities of one instance: what `ctx.local` asked for, run in this process between its turns.
 *
 * LOCAL-1 What is open in the instance's state and due is running here, once per attempt; what is not open any more is told
 *    to stop. Looked at after every turn, so it does not matter why an activity is open: asked for just now, left by an
 *    owner that died, or due for its next attempt.
 * LOCAL-2 An activity that runs is stood for by an inbox message that is kept unacknowledged (the anchor of the lane), or by
 *    a durable schedule of its event: one of them brings the instance to the next owner if this process dies.
 * LOCAL-3 Its report is mail of the instance like a worker's. First completion of the current attempt wins (T5).
 */
import { type ActivityReport, EventId, WorkerId } from "../../../schemas/index.ts";
import { CancelledError } from "../../../shared/errors/index.ts";
import type { InstanceState, OpenTask } from "../../../shared/replay/index.ts";
import type { Timer } from "../../../shared/runtime/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import { runLocalActivity } from "./run-local-activity.ts";

interface Run {
  readonly execution: number;
  readonly attempt: number;
  /** Absent while it waits for its time. */
  abort: AbortController | undefined;
  waiting: Timer | undefined;
}

export class LocalWork {
  readonly #deps: OrchestratorDeps;
  readonly #onReport: (report: ActivityReport) => void;
  readonly #runs = new Map<number, Run>();

  constructor(deps: OrchestratorDeps, onReport: (report: ActivityReport) => void) {
    this.#deps = deps;
    this.#onReport = onReport;
  }

  /** Nothing runs, and nothing waits to. */
  get idle(): boolean {
    return this.#runs.size === 0;
  }

  /** After a turn (LOCAL-1). */
  follow(state: Readonly<InstanceState>): void {
    for (const [id, run] of this.#runs) {
      if (!isFor(run, state, state.tasks.get(id))) this.#end(id, run, "cancelled");
    }
    for (const task of state.tasks.values()) {
      if (task.target.kind === "local" && !this.#runs.has(task.id)) this.#begin(state, task);
    }
  }

  /** The partition is somebody else's now, who runs what is open again. */
  letGo(): void {
    for (const [id, run] of this.#runs) this.#end(id, run, "the orchestrator gave its partition up");
  }

  #end(id: number, { abort, waiting }: Run, reason: string): void {
    this.#runs.delete(id);
    waiting?.cancel();
    abort?.abort(new CancelledError(reason));
  }

  #begin({ instanceId, execution, traceparent }: Readonly<InstanceState>, task: OpenTask): void {
    const { clock } = this.#deps.runtime;
    const run: Run = { execution, attempt: task.attempt, abort: undefined, waiting: undefined };
    this.#runs.set(task.id, run);
    const start = () => {
      run.waiting = undefined;
      run.abort = new AbortController();
      const about = { instanceId, traceparent, abort: run.abort };
      void runLocalActivity(this.#deps, task, about).then((result) => {
        if (this.#runs.get(task.id) !== run) return; // nobody waits for it any more
        this.#runs.delete(task.id);
        const workerId = WorkerId.parse(this.#deps.id);
        this.#onReport({
          v: 1,
          execution,
          of: EventId.parse(task.id),
          attempt: run.attempt,
          workerId,
          result,
        });
      });
    };
    // Within a history time may be ahead of this clock: what was asked for is due, whatever the clock says.
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
