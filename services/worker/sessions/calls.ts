/**
 * The calls of one attachment: in order, `concurrency` at a time, each with one of the worker's call slots while it
 * runs. Knows nothing of leases: it is told when to hold, to go on and to end.
 *
 * C1 A call is known by (instance, execution, event, attempt); its epoch is the attachment's. What was seen is not
 *    run again, however often it is delivered.
 * C2 A run is over when the user's code is over, not when somebody stopped waiting for it: until then the state is
 *    in use and the next call waits.
 * C3 State is dirty while code runs on it, and stays so where a result could not be told (S14).
 */
import type { ActivityTask } from "../../../schemas/index.ts";
import type { AnySession, SessionView } from "../../../shared/definitions/index.ts";
import { CancelledError } from "../../../shared/errors/index.ts";
import { type Timer, within } from "../../../shared/runtime/index.ts";
import { publishReport, reportOf } from "../activities/report.ts";
import { runTask } from "../activities/run-task.ts";
import type { TaskOutcome } from "../activities/task-outcome.ts";
import type { HostSession, RunFacts, RunHooks } from "../hosts/index.ts";
import type { Slot, Slots } from "../slots.ts";
import { Batch, resultOf } from "./batch.ts";
import { batchRuleOf, withLimits } from "./call-limits.ts";
import { CallQueue, type QueuedCall } from "./call-queue.ts";
import { Seen } from "./seen.ts";
import type { SessionDeps, SessionTiming } from "./session-deps.ts";

export interface CallsInit {
  deps: SessionDeps;
  timing: SessionTiming;
  slots: Slots;
  state: HostSession;
  session: SessionView;
  definition: AnySession | undefined;
  /** Whether results may still be told (S7). */
  mayTell: () => boolean;
  /** Aborts when they may not. */
  fenced: AbortSignal;
  /** Nothing runs and nothing waits. */
  onQuiet: () => void;
  onBusy: () => void;
  /** A run is over and the next has not begun. */
  onRan: () => void;
  /** User code overstayed its time: the state is not to be trusted any more. */
  onHung: (detail: string) => void;
}

interface Running {
  readonly queued: QueuedCall;
  readonly controller: AbortController;
}

type Code = (facts: RunFacts, input: unknown, signal: AbortSignal, hooks: RunHooks) => Promise<unknown>;

/** Remembered per attachment (C1). A repeat comes from the last turn of its instance, so a few would do. */
const remembered = 1024;

export class Calls {
  readonly #init: CallsInit;
  #state: HostSession;
  readonly #queue: CallQueue;
  readonly #concurrency: number;
  readonly #seen = new Seen(remembered);
  readonly #running = new Map<string, Running>();
  readonly #changes = new Set<() => void>();
  #units = 0;
  #asked = 0;
  #untold = 0;
  #done = 0;
  #holding = 0;
  #ended = false;
  #delay: Timer | undefined;

  constructor(init: CallsInit) {
    this.#init = init;
    this.#state = init.state;
    this.#concurrency = Math.max(1, init.definition?.options.concurrency ?? 1);
    this.#queue = new CallQueue(({ call, task }) =>
      call ? batchRuleOf(init.definition, task.name) : undefined,
    );
  }

  get running(): number {
    return this.#running.size;
  }

  get queued(): number {
    return this.#queue.size;
  }

  get done(): number {
    return this.#done;
  }

  get dirty(): boolean {
    return this.#units > 0 || this.#untold > 0;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get quiet(): boolean {
    return this.#units === 0 && this.#queue.size === 0;
  }

  /** False where it was seen before (C1). */
  add(task: ActivityTask, call: boolean): boolean {
    if (this.#ended || !this.#seen.add(keyOf(task, task.attempt))) return false;
    this.#queue.add({ task, call, arrivedAt: this.#init.deps.runtime.clock.monotonic() });
    this.#init.onBusy();
    this.#pump();
    return true;
  }

  /** Nobody waits for it any more. */
  cancel(execution: number, of: number): void {
    const matches = ({ task }: QueuedCall) => task.execution === execution && task.of === of;
    this.#queue.remove(matches);
    for (const { queued, controller } of this.#running.values()) {
      if (matches(queued)) controller.abort(new CancelledError());
    }
    this.#settled();
  }

  /** Starts nothing new until the release, which counts as running code; resolves when nothing else runs. */
  async hold(): Promise<() => void> {
    this.#holding++;
    while (this.#units > 0) await this.#change();
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holding--;
      this.#pump();
      this.#settled();
    };
  }

  /** The state lives elsewhere now. Only while nothing runs. */
  moveTo(state: HostSession): void {
    this.#state = state;
  }

  /** Drops what waits, aborts what runs. */
  end(reason: Error): void {
    this.#ended = true;
    this.#delay?.cancel();
    this.#queue.clear();
    for (const { controller } of this.#running.values()) controller.abort(reason);
  }

  /** Drops what waits, lets finish what runs. */
  finish(): void {
    this.#ended = true;
    this.#delay?.cancel();
    this.#queue.clear();
  }

  /** Resolves when no user code runs (C2). */
  async over(): Promise<void> {
    while (this.#units > 0 || this.#holding > 0) await this.#change();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#changes.add(resolve));
  }

  #pump(): void {
    this.#delay?.cancel();
    this.#delay = undefined;
    while (!this.#ended && this.#holding === 0 && this.#units + this.#asked < this.#concurrency) {
      const turn = this.#queue.look(this.#init.deps.runtime.clock.monotonic());
      if (turn.kind === "wait")
        this.#delay = this.#init.deps.runtime.clock.after(turn.ms, () => this.#pump());
      if (turn.kind !== "run") return;
      this.#asked++;
      this.#init.slots.request((slot) => this.#onSlot(slot));
      // No slot came at once: one waiter in the line speaks for the whole queue.
      if (this.#asked > 0) return;
    }
  }

  #onSlot(slot: Slot): void {
    this.#asked--;
    const may = !this.#ended && this.#holding === 0;
    const turn = may ? this.#queue.take(this.#init.deps.runtime.clock.monotonic()) : undefined;
    if (turn?.kind !== "run") {
      slot.release();
      if (turn?.kind === "wait") this.#pump();
      return;
    }
    this.#units++;
    void this.#runUnit(turn.calls).finally(() => {
      this.#units--;
      slot.release();
      this.#init.onRan();
      this.#pump();
      this.#settled();
    });
    this.#pump();
  }

  #settled(): void {
    for (const resolve of this.#changes) resolve();
    this.#changes.clear();
    if (this.quiet && !this.#ended) this.#init.onQuiet();
  }

  async #runUnit(calls: [QueuedCall, ...QueuedCall[]]): Promise<void> {
    const [first] = calls;
    const state = this.#state;
    const { name } = first.task;
    if (!first.call) {
      await this.#runOne(first, (facts, input, signal, hooks) =>
        state.activity(name, input, facts, { signal, hooks }),
      );
    } else if (batchRuleOf(this.#init.definition, name)) {
      await this.#runBatch(calls);
    } else {
      await this.#runOne(first, async (facts, input, signal, hooks) => {
        const [item] = await state.call(name, [input], facts, { signal, hooks });
        return resultOf(item);
      });
    }
  }

  async #runBatch(calls: [QueuedCall, ...QueuedCall[]]): Promise<void> {
    const { deps, session } = this.#init;
    const state = this.#state;
    const { clock } = deps.runtime;
    const { name } = calls[0].task;
    const members: RunHooks[] = [];
    const startedAt = clock.monotonic();
    const batch = new Batch(
      calls.length,
      (inputs, signal) =>
        state.call(name, inputs, factsOf(calls[0].task), { signal, hooks: everyone(members) }),
      (size) =>
        deps.runtime.announce({
          kind: "batch.ran",
          type: session.type,
          name,
          size,
          ms: clock.monotonic() - startedAt,
        }),
    );
    await Promise.all(
      calls.map(async (call) => {
        let joined = false;
        await this.#runOne(
          call,
          (_facts, input, signal, hooks) => {
            joined = true;
            members.push(hooks);
            return batch.join(input, signal);
          },
          () => {
            if (!joined) batch.leave();
          },
        );
      }),
    );
  }

  async #runOne(queued: QueuedCall, code: Code, onOutcome: () => void = () => undefined): Promise<void> {
    const { deps, session, definition } = this.#init;
    const { clock, announce } = deps.runtime;
    const key = keyOf(queued.task, queued.task.attempt);
    const controller = new AbortController();
    this.#running.set(key, { queued, controller });
    const startedAt = clock.monotonic();
    const about = { sessionId: session.id, type: session.type, name: queued.task.name, of: queued.task.of };
    const { epoch } = session;
    announce({ kind: "call.started", ...about, epoch, waitedMs: startedAt - queued.arrivedAt });
    const task = withLimits(queued.task, { call: queued.call, definition, app: deps.app });
    if (task.reportStart) this.#tell(task, { kind: "started" });
    let finished: Promise<unknown> = Promise.resolve();
    const outcome = await runTask(deps, task, {
      run: (ctx, input) =>
        code({ ...factsOf(task), lastHeartbeat: ctx.lastHeartbeat }, input, controller.signal, {
          heartbeat: (details) => ctx.heartbeat(details),
          write: (chunk) => ctx.stream.write(chunk),
          log: (level, message, fields) =>
            announce({
              kind: "work.log",
              ...{ instanceId: task.instanceId, name: task.name, of: task.of, attempt: task.attempt },
              ...{ sessionId: session.id, level, message, ...(fields ? { fields } : {}) },
            }),
        }),
      ...(definition ? {} : { session }),
      controller,
      // The attempt may have begun under the epoch before.
      deliveries: session.attachment > 1 && task.timeouts.heartbeatMs !== undefined ? 2 : 1,
      runNumber: epoch,
      onAbandoned: (over) => {
        finished = over;
      },
    });
    onOutcome();
    this.#done++;
    announce({
      kind: "call.ended",
      ...about,
      epoch,
      outcome: outcome.kind === "interrupted" ? "cancelled" : endOf(outcome),
      ms: clock.monotonic() - startedAt,
    });
    if (outcome.kind !== "interrupted") this.#tell(task, reportOf(outcome));
    if (outcome.kind === "timeout") await this.#overstayed(queued, outcome.error.message, finished);
    await finished.catch(() => undefined);
    this.#running.delete(key);
  }

  /** A call that overstays leaves its state dirty; an activity may still stop in time, its state is its own. */
  async #overstayed(queued: QueuedCall, detail: string, finished: Promise<unknown>): Promise<void> {
    const { timing, onHung } = this.#init;
    if (queued.call || (await within(timing.closeMs, finished)) === "late") onHung(detail);
  }

  #tell(task: ActivityTask, result: Parameters<typeof publishReport>[2]): void {
    const { deps, session, mayTell, fenced } = this.#init;
    this.#untold++;
    if (!mayTell()) return this.#fence(task);
    void publishReport(deps, task, result, { epoch: session.epoch, signal: fenced }).then((outcome) => {
      if (outcome === "stored") this.#untold--;
      else this.#fence(task);
    });
  }

  /** S7: under a right that is over nothing is told. It stays counted as untold, so the state stays dirty (C3). */
  #fence(task: ActivityTask): void {
    const { instanceId, of } = task;
    const { epoch } = this.#init.session;
    this.#init.deps.runtime.announce({ kind: "completion.fenced", instanceId, of, epoch });
  }
}

const keyOf = ({ instanceId, execution, of }: ActivityTask, attempt: number): string =>
  `${instanceId}/${execution}/${of}/${attempt}`;

const factsOf = ({ instanceId, name, attempt }: ActivityTask): RunFacts => ({
  instanceId,
  name,
  attempt,
  lastHeartbeat: undefined,
});

const endOf = (outcome: Exclude<TaskOutcome, { kind: "interrupted" }>): "completed" | "failed" | "timeout" =>
  outcome.kind === "state_missing" ? "failed" : outcome.kind;

/** What a batch says is said for each of its members. */
function everyone(members: readonly RunHooks[]): RunHooks {
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
