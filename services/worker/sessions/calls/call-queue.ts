/**
 * Calls of one session that wait for their turn, in order of arrival. Neighbours of the same batching call
 * run together. A batch waits for more members only while no other call is behind it, and no longer than its
 * oldest member may wait.
 */
import type { ActivityTask } from "../../../../schemas/index.ts";
import type { ReplyPath } from "../../lane/index.ts";

/** A call taken from a queue shared with other members of a pool. The holder of the loan settles it once. */
export interface SharedCall {
  /** How often the queue delivered the call, to any member. */
  readonly deliveries: number;
  /** `done`: the call was answered, or its caller no longer waits. `back`: another member may take it. */
  settle(how: "done" | "back"): void;
}

export interface QueuedCall {
  readonly task: ActivityTask;
  /** True for a call of the session's type; false for an ordinary activity that runs on the session. */
  readonly call: boolean;
  /** Monotonic clock. */
  readonly arrivedAt: number;
  /** Undefined if the call was sent to this session alone. */
  readonly loan?: SharedCall | undefined;
  /** Set if the call came by the lane: its result goes back there. */
  readonly lane?: ReplyPath | undefined;
}

export interface BatchRule {
  maxSize: number;
  maxDelayMs: number;
}

export type Turn =
  | { kind: "empty" }
  | { kind: "wait"; ms: number }
  | { kind: "run"; calls: [QueuedCall, ...QueuedCall[]] };

export class CallQueue {
  readonly #batchRule: (call: QueuedCall) => BatchRule | undefined;
  #waiting: QueuedCall[] = [];

  constructor(batchRule: (call: QueuedCall) => BatchRule | undefined) {
    this.#batchRule = batchRule;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** The call that has waited longest. */
  get head(): QueuedCall | undefined {
    return this.#waiting[0];
  }

  add(call: QueuedCall): void {
    this.#waiting.push(call);
  }

  /** Returns the run that would come next; `take` removes it. */
  look(now: number): Turn {
    const [head] = this.#waiting;
    if (!head) return { kind: "empty" };
    const rule = this.#batchRule(head);
    if (!rule) return { kind: "run", calls: [head] };
    const others = this.#waiting.findIndex(
      (one) => one.call !== head.call || one.task.name !== head.task.name,
    );
    const together = others === -1 ? this.#waiting.length : others;
    const leftMs = head.arrivedAt + rule.maxDelayMs - now;
    if (together < rule.maxSize && others === -1 && leftMs > 0) return { kind: "wait", ms: leftMs };
    return { kind: "run", calls: [head, ...this.#waiting.slice(1, Math.min(together, rule.maxSize))] };
  }

  popTurn(now: number): Turn {
    const turn = this.look(now);
    if (turn.kind === "run") this.#waiting = this.#waiting.slice(turn.calls.length);
    return turn;
  }

  /** Removes the calls whose callers no longer wait. */
  remove(matches: (call: QueuedCall) => boolean): QueuedCall[] {
    const gone = this.#waiting.filter(matches);
    if (gone.length > 0) this.#waiting = this.#waiting.filter((call) => !gone.includes(call));
    return gone;
  }

  has(matches: (call: QueuedCall) => boolean): boolean {
    return this.#waiting.some(matches);
  }

  clear(): QueuedCall[] {
    const dropped = this.#waiting;
    this.#waiting = [];
    return dropped;
  }
}
