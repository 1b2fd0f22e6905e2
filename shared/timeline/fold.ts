/** Folds dated events into a timeline. Pure: an imported file is shown exactly like a live instance. */
import type { EventOf, HistoryEvent, InstanceStatus } from "../../schemas/index.ts";
import { failureText } from "../wording/index.ts";
import { SessionLives } from "./session-lives.ts";
import type { DatedEvent, InstanceTimeline, Work, WorkState } from "./timeline.ts";

/** Shows the latest execution only: earlier ones have ended, and what they carried over is part of its start. */
export function foldTimeline(events: Iterable<DatedEvent>): InstanceTimeline {
  let fold = new Fold();
  for (const { at, event } of events) {
    if (event.kind === "instance.started") fold = new Fold();
    fold.apply(event, at);
  }
  return fold.timeline;
}

class Fold {
  readonly timeline: InstanceTimeline;
  readonly #work = new Map<number, Work>();
  readonly #sessions: SessionLives;
  #isFirst = true;

  constructor() {
    this.timeline = {
      ...{ name: undefined, status: "pending", startedAt: undefined, endedAt: undefined, note: "" },
      ...{ from: 0, last: 0, ended: false, work: [], sessions: [], received: [], pools: [] },
    };
    this.#sessions = new SessionLives(this.timeline.sessions);
  }

  apply(event: HistoryEvent, at: number): void {
    const { timeline } = this;
    if (this.#isFirst) timeline.from = at;
    this.#isFirst = false;
    timeline.last = Math.max(timeline.last, at);
    switch (event.kind) {
      case "instance.started":
        return this.#started(event, at);
      case "instance.completed":
        return this.#over(at, "completed", "");
      case "instance.failed":
        return this.#over(at, "failed", failureText(event.error));
      case "instance.cancelled":
        return this.#over(at, "cancelled", event.reason ?? "");
      case "instance.terminated":
        return this.#over(at, "terminated", event.reason ?? "");
      case "instance.continued":
        timeline.ended = true;
        return this.#sessions.end(at);
      case "activity.scheduled":
        return this.#scheduled(event, at);
      case "activity.started":
        return this.#change(event.of, { startedAt: at, workerId: event.workerId, retryAt: undefined });
      case "activity.attempt_failed": {
        const { attempt, error, retryAt } = event;
        this.#work.get(event.of)?.attempts.push({ at, attempt, error, retryAt });
        return this.#change(event.of, { retryAt });
      }
      case "activity.completed":
        return this.#end(event.of, at, "completed", {
          ...(event.workerId === undefined ? {} : { workerId: event.workerId }),
          ...(event.epoch === undefined ? {} : { epoch: event.epoch }),
        });
      case "activity.failed":
      case "child.failed":
        return this.#end(event.of, at, "failed", { failure: event.error });
      case "activity.cancelled":
      case "timer.cancelled":
      case "child.cancelled":
        return this.#end(event.of, at, "cancelled");
      case "timer.created":
        return this.#begin(event.id, at, { kind: "timer", name: "timer", fireAt: event.fireAt });
      case "timer.fired":
      case "child.completed":
        return this.#end(event.of, at, "completed");
      case "child.scheduled": {
        const { name, childId, input } = event;
        const detached = event.mode === "detached";
        this.#begin(event.id, at, { kind: "child", name, childId, input, detached });
        // The orchestration does not wait for a detached child: the item is done when the child is started.
        if (detached) this.#end(event.id, at, "completed");
        return;
      }
      case "signal.received":
        timeline.received.push({ kind: "signal", id: event.id, at, name: event.name });
        return;
      case "update.accepted":
        timeline.received.push({ kind: "update", id: event.id, at, name: event.name });
        return;
      case "update.completed":
        return this.#answered(event.of, { at });
      case "update.failed":
        return this.#answered(event.of, { at, failure: event.error });
      case "cancel.requested":
        timeline.note = `asked to cancel${event.reason === undefined ? "" : `: ${event.reason}`}`;
        timeline.received.push({ kind: "cancel", id: event.id, at, name: "cancel" });
        return;
      case "status.set":
        timeline.note = event.status;
        return;
      case "side_effect.recorded":
      case "patch.marked":
      case "end.requested":
        return;
      case "pool.joined":
        timeline.pools.push({ id: event.id, poolId: event.poolId, from: at, to: undefined });
        return;
      case "pool.lent":
        return this.#sessions.lent(event, at);
      case "pool.left": {
        const use = timeline.pools.findLast(({ id, poolId }) =>
          event.of === undefined ? poolId === event.poolId : id === event.of,
        );
        if (use) use.to ??= at;
        return this.#sessions.givenBack(event, at);
      }
      default:
        return this.#sessions.apply(event, at);
    }
  }

  #started({ name, carried, granted }: EventOf<"instance.started">, at: number): void {
    const { timeline } = this;
    timeline.name = name;
    timeline.status = "running";
    timeline.startedAt = carried?.startedAt ?? at;
    for (const session of [...(carried?.sessions ?? []), ...(granted ?? [])])
      this.#sessions.brought(session, at);
  }

  #scheduled({ id, name, input, target, by }: EventOf<"activity.scheduled">, at: number): void {
    const work = { name, input, ...(by ? { byEngine: true } : {}) };
    switch (target.kind) {
      case "queue":
        return this.#begin(id, at, { kind: "activity", queue: target.queue, ...work });
      case "local":
        return this.#begin(id, at, { kind: "activity", local: true, ...work });
      case "session": {
        const kind = target.call ? "call" : "activity";
        return this.#begin(id, at, { kind, sessionId: target.sessionId, ...work });
      }
    }
  }

  #begin(id: number, at: number, work: Omit<Work, "id" | "from" | "to" | "state" | "attempts">): void {
    const begun: Work = { id, from: at, to: undefined, state: "open", attempts: [], ...work };
    this.#work.set(id, begun);
    this.timeline.work.push(begun);
  }

  #change(of: number, change: Partial<Work>): void {
    const work = this.#work.get(of);
    if (work) Object.assign(work, change);
  }

  #end(of: number, at: number, state: WorkState, more: Partial<Work> = {}): void {
    this.#change(of, { to: at, state, retryAt: undefined, ...more });
  }

  #answered(of: number, answered: InstanceTimeline["received"][number]["answered"]): void {
    const update = this.timeline.received.find(({ id }) => id === of);
    if (update && answered) update.answered = answered;
  }

  #over(at: number, status: InstanceStatus, note: string): void {
    Object.assign(this.timeline, { status, note, endedAt: at, ended: true });
    this.#sessions.end(at);
  }
}
