/**
 * Calls of one session waiting for their turn: in order of arrival, neighbours of the same batching call together.
 * A batch waits for company only while nothing else is behind it and no longer than its oldest member may.
 */
import type { ActivityTask } from "../../../../schemas/index.ts";
import type { LanePath } from "../../lane/index.ts";

/** A call taken from a queue that others take from too: whoever holds it says what became of it, once. */
export interface Loan {
  /** How often it was handed out, to whomever. */
  readonly deliveries: number;
  /** `done`: it was answered, or nobody waits for it. `back`: another may have it. */
  settle(how: "done" | "back"): void;
}

export interface QueuedCall {
  readonly task: ActivityTask;
  /** A call of the session's type, or an ordinary activity beside its state. */
  readonly call: boolean;
  /** Monotonic. */
  readonly arrivedAt: number;
  /** Absent where the call was sent to this session and nobody else. */
  readonly loan?: Loan | undefined;
  /** Present where it came by the lane: its result goes back there. */
  readonly lane?: LanePath | undefined;
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

  /** The oldest that waits. */
  get head(): QueuedCall | undefined {
    return this.#waiting[0];
  }

  add(call: QueuedCall): void {
    this.#waiting.push(call);
  }

  /** What would run next; `take` removes it. */
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

  take(now: number): Turn {
    const turn = this.look(now);
    if (turn.kind === "run") this.#waiting = this.#waiting.slice(turn.calls.length);
    return turn;
  }

  /** Removes what nobody waits for any more. */
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
