/**
 * Runs calls that have a slot: from the task to the report. Anything user code throws or returns becomes an
 * outcome here.
 *
 * CALL-2 A run is over when the user's code is over, not when its caller stopped waiting: until then the
 *    state is in use and the next call waits.
 * CALL-3 A call whose report could not be sent stays counted: the state has seen a call that its instance
 *    will send again.
 */
import type { ActivityTask, RunningCall } from "../../../../schemas/index.ts";
import type { AnySession, SessionView } from "../../../../shared/definitions/index.ts";
import { CancelledError, HoldfastError } from "../../../../shared/errors/index.ts";
import { within } from "../../../../shared/runtime/index.ts";
import { endOf, missingTags, publishReport, type Report, reportOf, runTask } from "../../activities/index.ts";
import type { HostSession, RunFacts, RunHooks } from "../../hosts/index.ts";
import { type Aborting, LazyAbort } from "../../lazy-abort.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import { Batch, resultOf } from "./batch.ts";
import { batchRuleOf, withLimits } from "./call-limits.ts";
import type { QueuedCall, SharedCall } from "./call-queue.ts";

export interface CallRunnerInit {
  deps: SessionDeps;
  timing: SessionTiming;
  session: SessionView;
  definition: AnySession | undefined;
  /** Returns true while this worker may still report results (S7). */
  mayReport: () => boolean;
  /** Aborts when this worker may no longer report. */
  fenced: AbortSignal;
  /** User code exceeded its time: the state can no longer be trusted. */
  onHung: (detail: string) => void;
}

/** The user's code, in any kind of host. */
type Code = (facts: RunFacts, input: unknown, signal: Aborting, hooks: RunHooks) => Promise<unknown>;

interface Running {
  readonly queued: QueuedCall;
  readonly abort: LazyAbort;
  /** True if the caller no longer waits; false if the session ends while the call runs. */
  cancelled: boolean;
}

export class CallRunner {
  readonly #init: CallRunnerInit;
  /** Absent while empty, like the list of reports in progress: thousands of sessions may be waiting for a call. */
  #running: Set<Running> | undefined;
  #done = 0;
  #errors = 0;
  #unreported = 0;
  #reports: Set<Promise<void>> | undefined;

  constructor(init: CallRunnerInit) {
    this.#init = init;
  }

  get running(): number {
    return this.#running?.size ?? 0;
  }

  runningCalls(): RunningCall[] {
    return [...(this.#running ?? [])].map(({ queued: { task } }) => ({
      instanceId: task.instanceId,
      execution: task.execution,
      of: task.of,
      attempt: task.attempt,
    }));
  }

  /** Number of calls that failed or took too long. */
  get errors(): number {
    return this.#errors;
  }

  /** Number of calls that have ended in any way. */
  get done(): number {
    return this.#done;
  }

  get unreported(): number {
    return this.#unreported;
  }

  /** Resolves when every pending report is stored or given up. */
  async reported(): Promise<void> {
    await Promise.all(this.#reports ?? []);
  }

  abort(reason: Error, which: (queued: QueuedCall) => boolean = () => true): void {
    for (const { queued, abort } of this.#running ?? []) if (which(queued)) abort.abort(reason);
  }

  cancel(which: (queued: QueuedCall) => boolean): void {
    for (const running of this.#running ?? []) if (which(running.queued)) running.cancelled = true;
    this.abort(new CancelledError(), which);
  }

  /** One run of user code, for one call or for a batch. Never rejects. */
  async run(state: HostSession, calls: [QueuedCall, ...QueuedCall[]]): Promise<void> {
    const [first] = calls;
    const { name } = first.task;
    if (!first.call) {
      await this.#runOne(first, async (facts, input, signal, hooks) => {
        this.#requireTags(name);
        return resultOf(await state.activity(name, input, facts, { signal, hooks }));
      });
    } else if (batchRuleOf(this.#init.definition, name)) {
      await this.#runBatch(state, calls);
    } else {
      await this.#runOne(first, async (facts, input, signal, hooks) => {
        const [item] = await state.call(name, [input], facts, { signal, hooks });
        return resultOf(item);
      });
    }
  }

  /** An activity on a session still needs a worker with the tags that its definition requires. */
  #requireTags(name: string): void {
    const { deps, session } = this.#init;
    const activity = deps.app.activities.get(name);
    const missing = activity ? missingTags(activity, deps.config.tags) : [];
    if (missing.length === 0) return;
    const tags = missing.join(", ");
    throw new HoldfastError({
      code: "missing_tags",
      message: `activity "${name}" requires ${tags}, and worker ${session.workerId}, which holds session ${session.id}, has not; open the session with placement: { tags: [${missing.map((tag) => JSON.stringify(tag)).join(", ")}] }`,
      retryable: false,
    });
  }

  async #runBatch(state: HostSession, calls: [QueuedCall, ...QueuedCall[]]): Promise<void> {
    const { deps, session } = this.#init;
    const { clock, announce } = deps.runtime;
    const { name } = calls[0].task;
    const { type } = session;
    const members: RunHooks[] = [];
    const together: Running[] = [];
    const startedAt = clock.monotonic();
    const batch = new Batch(
      calls.length,
      (inputs, signal) =>
        state.call(name, inputs, factsOf(calls[0].task), { signal, hooks: allMembers(members) }),
      (size) => announce({ kind: "batch.ran", type, name, size, ms: clock.monotonic() - startedAt }),
    );
    const runMember = async (call: QueuedCall) => {
      let joined = false;
      const join: Code = (_facts, input, signal, hooks) => {
        joined = true;
        members.push(hooks);
        return batch.join(input, signal);
      };
      const onOutcome = () => {
        if (!joined) batch.leave();
      };
      await this.#runOne(call, join, { onOutcome, together });
    };
    await Promise.all(calls.map(runMember));
  }

  async #runOne(
    queued: QueuedCall,
    code: Code,
    { onOutcome, together = [] }: { onOutcome?: () => void; together?: Running[] } = {},
  ): Promise<void> {
    const { deps, session, definition } = this.#init;
    const { clock, announce } = deps.runtime;
    const { epoch } = session;
    const { loan } = queued;
    const abort = new LazyAbort();
    const running: Running = { queued, abort, cancelled: false };
    this.#running ??= new Set();
    this.#running.add(running);
    together.push(running);
    const startedAt = clock.monotonic();
    const task = withLimits(queued.task, queued.call ? definition : undefined);
    const about = { sessionId: session.id, type: session.type, name: task.name, of: task.of, epoch };
    announce({ kind: "call.started", ...about, waitedMs: startedAt - queued.arrivedAt });
    if (task.reportStart) this.#report(queued, task, { kind: "started" });
    let finished: Promise<unknown> | undefined;
    const outcome = await runTask(deps, task, {
      run: (ctx, input) =>
        code({ ...factsOf(task), lastHeartbeat: ctx.lastHeartbeat }, input, abort, {
          heartbeat: (details) => ctx.heartbeat(details),
          write: (chunk) => ctx.stream.write(chunk),
          log: (level, message, fields) => this.#log(task, level, message, fields),
        }),
      // Only activities of a bare session can report that their state is missing; the engine keeps a typed
      // session's state.
      ...(definition ? {} : { session }),
      abort,
      // The attempt may have begun under an earlier epoch, or on another member of the pool.
      deliveries:
        loan?.deliveries ?? (session.attachment > 1 && task.timeouts.heartbeatMs !== undefined ? 2 : 1),
      runNumber: loan?.deliveries ?? epoch,
      onAbandoned: (over) => {
        finished = over;
      },
    });
    onOutcome?.();
    this.#done++;
    const end = endOf(outcome);
    if (end === "failed" || end === "timeout") this.#errors++;
    announce({
      kind: "call.ended",
      ...about,
      outcome: end,
      ms: clock.monotonic() - startedAt,
      ...{ instanceId: task.instanceId, traceparent: task.traceparent },
    });
    if (outcome.kind !== "interrupted") this.#report(queued, task, reportOf(outcome), loan);
    else {
      loan?.settle(running.cancelled ? "done" : "back");
      queued.lane?.drop?.(false);
    }
    if (outcome.kind === "timeout") await this.#handleTimeout(queued, outcome.error.message, finished);
    // CALL-2; an error that the code throws from now on is ignored.
    const over = finished?.catch(() => undefined);
    if (over && running.cancelled) await this.#handleCancelled(task, together, over);
    else await over;
    this.#running.delete(running);
    if (this.#running.size === 0) this.#running = undefined;
  }

  /**
   * Cancelled code that does not stop may still use the state (CALL-2): the state is given up, or the code is
   * abandoned if the type allows it. A batch goes on while one of its callers still waits.
   */
  async #handleCancelled(
    task: ActivityTask,
    together: readonly Running[],
    over: Promise<unknown>,
  ): Promise<void> {
    const { timing, definition, onHung, deps } = this.#init;
    while ((await within(timing.closeMs, over, deps.runtime.clock)) === "late") {
      if (!together.every(({ cancelled }) => cancelled)) continue;
      if (definition?.options.afterCancel === "go_on") return;
      onHung(`${task.name} was cancelled and did not stop within ${timing.closeMs} ms`);
      await over;
    }
  }

  /**
   * A call that exceeds its time leaves the state dirty. An activity may still stop in time: it has its own
   * state.
   */
  async #handleTimeout(
    { call }: QueuedCall,
    detail: string,
    finished: Promise<unknown> | undefined,
  ): Promise<void> {
    const { timing, onHung, deps } = this.#init;
    const waitMs = call ? 0 : timing.closeMs;
    const late = finished && (await within(waitMs, finished, deps.runtime.clock)) === "late";
    if (call || late) onHung(detail);
  }

  #report({ lane }: QueuedCall, task: ActivityTask, result: Report, loan?: SharedCall): void {
    const { deps, session, mayReport, fenced } = this.#init;
    this.#unreported++;
    if (!mayReport()) {
      this.#fence(task);
      loan?.settle("back");
      lane?.drop?.(false);
      return;
    }
    const options = { epoch: session.epoch, session, lane, signal: fenced };
    const reporting = publishReport(deps, task, result, options).then((outcome) => {
      this.#reports?.delete(reporting);
      if (this.#reports?.size === 0) this.#reports = undefined;
      if (outcome === "given_up") this.#fence(task);
      else this.#unreported--;
      loan?.settle(outcome === "given_up" ? "back" : "done");
    });
    this.#reports ??= new Set();
    this.#reports.add(reporting);
  }

  /** S7, S6: after the right has ended, results are counted and not reported (CALL-3). */
  #fence({ instanceId, of }: ActivityTask): void {
    const { epoch } = this.#init.session;
    this.#init.deps.runtime.announce({ kind: "completion.fenced", instanceId, of, epoch });
  }

  #log(task: ActivityTask, ...[level, message, fields]: Parameters<NonNullable<RunHooks["log"]>>): void {
    const { instanceId, name, of, attempt } = task;
    const sessionId = this.#init.session.id;
    this.#init.deps.runtime.announce({
      kind: "work.log",
      ...{ instanceId, name, of, attempt, sessionId, level, message, ...(fields ? { fields } : {}) },
    });
  }
}

const factsOf = ({ instanceId, name, attempt }: ActivityTask): RunFacts => ({
  instanceId,
  name,
  attempt,
  lastHeartbeat: undefined,
});

/** Passes a batch's heartbeats and stream chunks to each of its members. */
function allMembers(members: readonly RunHooks[]): RunHooks {
  return {
    heartbeat: (details) => {
      for (const member of members) member.heartbeat?.(details);
    },
    write: async (chunk) => {
      await Promise.all(members.map((member) => member.write?.(chunk)));
    },
    log: (...line) => members[0]?.log?.(...line),
  };
}
