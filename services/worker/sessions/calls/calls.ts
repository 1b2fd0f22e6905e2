/**
 * The calls of one attachment: in order, `concurrency` at a time, each with one of the worker's call slots
 * while it runs. This class knows nothing of leases: the attachment makes it hold, go on and end.
 *
 * CALL-1 A call is known by (instance, execution, event, attempt); its epoch is the attachment's. A call seen
 *    before is not run again, however often it is delivered.
 * CALL-4 A call lent by a queue is settled once: reported, cancelled, or given back because its turn did not
 *    come.
 * CALL-5 A member of a pool serves one borrower at a time: the first call of the next lending ends what is
 *    left of the one before, and waits until that is over; calls of an earlier lending are dropped.
 */

import {
  type ActivityTask,
  type Concurrency,
  callsAtOnce,
  type RunningCall,
  type SessionCall,
} from "../../../../schemas/index.ts";
import { RecentKeys } from "../../../../shared/bus/index.ts";
import { type Timer, within } from "../../../../shared/runtime/index.ts";
import type { HostSession } from "../../hosts/index.ts";
import type { ReplyPath } from "../../lane/index.ts";
import type { Slot, Slots } from "../../slots.ts";
import { batchRuleOf } from "./call-limits.ts";
import { CallQueue, type QueuedCall, type SharedCall } from "./call-queue.ts";
import { CallRunner, type CallRunnerInit } from "./call-runner.ts";

interface CallsInit extends CallRunnerInit {
  slots: Slots;
  state: HostSession;
  /** The opener's option, for a session without a type. */
  concurrency?: Concurrency | undefined;
  /** Called when no call runs and none waits. */
  onQuiet: () => void;
  onBusy: () => void;
  /** Called when the lease turns out to be lost before the next call begins. */
  onFenced?: () => void;
  /** A run has ended and the next has not begun. */
  onRan: () => void;
}

/** The call as an instance sends it to the holder. */
type SentCall = Pick<SessionCall, "task" | "call" | "lending">;

/** Names a task; without an instance, a task of any instance with that event number. */
interface TaskName {
  instanceId?: string | undefined;
  execution: number;
  of: number;
}

/**
 * Calls remembered per attachment (CALL-1). A repeat comes from the last turn of its instance, so a few would
 * do.
 */
const remembered = 1024;

export class Calls {
  readonly #init: CallsInit;
  readonly #queue: CallQueue;
  readonly #runner: CallRunner;
  readonly #concurrency: number;
  readonly #seen = new RecentKeys(remembered);
  /** Absent while empty: most sessions wait for their next call most of the time, and there may be thousands. */
  #changes: Set<() => void> | undefined;
  #slots: Set<Slot> | undefined;
  #state: HostSession;
  /** Runs of user code under way; a batch counts as one. */
  #runs = 0;
  /** Runs for which a slot was requested. */
  #asked = 0;
  #holds = 0;
  #ended = false;
  /** The right is over: no run begins any more, whatever ends the attachment. */
  #fenced = false;
  #lending = 0;
  #delay: Timer | undefined;

  constructor(init: CallsInit) {
    const { definition } = init;
    this.#init = init;
    this.#state = init.state;
    this.#runner = new CallRunner(init);
    this.#concurrency = definition
      ? Math.max(1, definition.options.concurrency ?? 1)
      : callsAtOnce(init.concurrency);
    this.#queue = new CallQueue(({ call, task }) => (call ? batchRuleOf(definition, task.name) : undefined));
  }

  get running(): number {
    return this.#runner.running;
  }

  runningCalls(): RunningCall[] {
    return this.#runner.runningCalls();
  }

  get queued(): number {
    return this.#queue.size;
  }

  get busy(): boolean {
    return this.#runs > 0 || this.#queue.size > 0;
  }

  get errors(): number {
    return this.#runner.errors;
  }

  get done(): number {
    return this.#runner.done;
  }

  /** True from the start of a run until its result is known to the instance (S14). */
  get dirty(): boolean {
    return this.#runs > 0 || this.#runner.unreported > 0;
  }

  /**
   * Returns false if the call was seen before (CALL-1) or comes too late. `lending` is the lending it was
   * sent under, if any (CALL-5).
   */
  add({ task, call, lending = this.#lending }: SentCall, lane?: ReplyPath): boolean {
    if (lending < this.#lending) return false;
    if (lending > this.#lending) this.#handOver(lending);
    return this.#enter({ task, call, lane }) === "taken";
  }

  /**
   * Adds a call from a queue shared with other members. Only a call that is `taken` will be settled here
   * (CALL-4).
   */
  lend(task: ActivityTask, loan: SharedCall): "taken" | "seen" | "ended" {
    return this.#enter({ task, call: true, loan });
  }

  /** How long the oldest waiting call has waited here. */
  longestWaitMs(): number {
    const { head } = this.#queue;
    return head ? this.#now() - head.arrivedAt : 0;
  }

  /** The caller no longer waits for this call. */
  cancel({ instanceId, execution, of }: TaskName): void {
    const matches = ({ task }: QueuedCall) =>
      task.execution === execution &&
      task.of === of &&
      (instanceId === undefined || task.instanceId === instanceId);
    for (const { loan, lane } of this.#queue.remove(matches)) {
      loan?.settle("done");
      lane?.drop?.(true);
    }
    this.#runner.cancel(matches);
    this.#changed();
  }

  /** Starts no run until the release, which counts as running code; resolves when nothing else runs. */
  async hold(): Promise<() => void> {
    this.#holds++;
    while (this.#runs > 0) await this.#change();
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holds--;
      this.#pump();
      this.#changed();
    };
  }

  /** The state has moved to another host. Call only while it is held. */
  moveTo(state: HostSession): void {
    this.#state = state;
  }

  /** Drops the waiting calls and lets the running ones finish. */
  finish(): void {
    this.#ended = true;
    this.#delay?.cancel();
    for (const { loan, lane } of this.#queue.clear()) {
      loan?.settle("back");
      lane?.drop?.(true);
    }
  }

  /** Drops the waiting calls and aborts the running ones. */
  end(reason: Error): void {
    this.finish();
    this.#runner.abort(reason);
  }

  /** Code that still runs cannot be stopped and may never end: its slots become free for other calls. */
  abandon(): void {
    for (const slot of this.#slots ?? []) slot.release();
  }

  /** Resolves when no user code runs (CALL-2). */
  async over(): Promise<void> {
    while (this.#runs > 0 || this.#holds > 0) await this.#change();
  }

  /** Resolves when every pending report is stored or given up. */
  reported(): Promise<void> {
    return this.#runner.reported();
  }

  #handOver(lending: number): void {
    const before = this.#lending;
    this.#lending = lending;
    if (before === 0) return;
    this.#queue.clear();
    this.#runner.cancel(() => true);
    const held = this.hold();
    void held.then((release) => release());
    void this.#endIfStuck(held);
  }

  /** Cancelled code that does not stop must not keep the next borrower waiting. */
  async #endIfStuck(held: Promise<unknown>): Promise<void> {
    const { timing, onHung, deps } = this.#init;
    if ((await within(timing.closeMs, held, deps.runtime.clock)) === "late" && !this.#ended)
      onHung("calls of the previous borrower did not stop");
  }

  #enter(call: Omit<QueuedCall, "arrivedAt">): "taken" | "seen" | "ended" {
    if (this.#ended) return "ended";
    if (!this.#seen.add(keyOf(call.task))) return "seen";
    this.#queue.add({ ...call, arrivedAt: this.#now() });
    this.#init.onBusy();
    this.#pump();
    return "taken";
  }

  #pump(): void {
    this.#delay?.cancel();
    this.#delay = undefined;
    while (
      !this.#ended &&
      !this.#fenced &&
      this.#holds === 0 &&
      this.#runs + this.#asked < this.#concurrency
    ) {
      const turn = this.#queue.look(this.#now());
      if (turn.kind === "wait") {
        this.#delay = this.#init.deps.runtime.clock.after(turn.ms, () => this.#pump());
      }
      if (turn.kind !== "run") return;
      this.#asked++;
      this.#init.slots.request((slot) => this.#onSlot(slot));
      // No slot is free: one request stands in line for the whole queue.
      if (this.#asked > 0) return;
    }
  }

  #onSlot(slot: Slot): void {
    this.#asked--;
    // S7: after a pause of the process the right may have ended before the keeper has said so. No code begins
    // then.
    if (!this.#ended && !this.#init.mayReport()) {
      this.#fenced = true;
      slot.release();
      this.#init.onFenced?.();
      return;
    }
    const turn = this.#ended || this.#holds > 0 ? undefined : this.#queue.popTurn(this.#now());
    if (turn?.kind !== "run") {
      slot.release();
      if (turn?.kind === "wait") this.#pump();
      return;
    }
    this.#runs++;
    this.#slots ??= new Set();
    this.#slots.add(slot);
    void this.#runner.run(this.#state, turn.calls).finally(() => {
      this.#runs--;
      this.#slots?.delete(slot);
      if (this.#runs === 0) this.#slots = undefined;
      slot.release();
      this.#init.onRan();
      this.#pump();
      this.#changed();
    });
    this.#pump();
  }

  #change(): Promise<void> {
    this.#changes ??= new Set();
    const changes = this.#changes;
    return new Promise((resolve) => changes.add(resolve));
  }

  #changed(): void {
    for (const resolve of this.#changes ?? []) resolve();
    this.#changes = undefined;
    if (this.#runs === 0 && this.#queue.size === 0 && !this.#ended) this.#init.onQuiet();
  }

  #now(): number {
    return this.#init.deps.runtime.clock.monotonic();
  }
}

const keyOf = ({ instanceId, execution, of, attempt }: ActivityTask): string =>
  `${instanceId}/${execution}/${of}/${attempt}`;
