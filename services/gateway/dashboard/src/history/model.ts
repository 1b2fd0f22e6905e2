/**
 * A history for display: what ran from when to when, and which worker held which session. A pure fold over
 * dated events, so that an imported file is shown exactly like a live instance.
 */

import type { Failure, HistoryEvent, Payload } from "../../../../../schemas/index.ts";
import { shortEpoch } from "../../../../../shared/wording/index.ts";
import type { DatedEvent } from "../../../routes/history.ts";

export type WorkState = "open" | "completed" | "failed" | "cancelled";

export interface Work {
  kind: "activity" | "call" | "child" | "timer";
  id: number;
  name: string;
  from: number;
  to: number | undefined;
  state: WorkState;
  queue?: string;
  /** True if it ran in the orchestrator's process. */
  local?: boolean;
  sessionId?: string;
  childId?: string;
  fireAt?: number;
  workerId?: string;
  epoch?: number;
  startedAt?: number;
  /** Failed attempts so far, latest last. */
  attempts: { at: number; message: string; retryAt: number }[];
  error?: string;
  /** The failure as recorded, with its stack. */
  failure?: Failure;
  input?: Payload;
  byEngine?: boolean;
}

export interface Segment {
  phase: "waiting" | "starting" | "held" | "parked";
  from: number;
  to: number | undefined;
  workerId?: string;
  epoch?: number;
  attachment?: number;
}

export interface Mark {
  at: number;
  kind:
    | "lost"
    | "reclaimed"
    | "checkpoint"
    | "metadata"
    | "blob"
    | "init failed"
    | "failed"
    | "closed"
    | "lent"
    | "returned";
  text: string;
  id: number;
}

export interface SessionLife {
  sessionId: string;
  type: string;
  /** Event id of the pool use for which the session was lent. */
  lentFor?: number;
  from: number;
  to: number | undefined;
  segments: Segment[];
  marks: Mark[];
}

export interface Signal {
  id: number;
  at: number;
  name: string;
}

export interface HistoryModel {
  from: number;
  /** Time of the last event. */
  last: number;
  ended: boolean;
  work: Work[];
  sessions: SessionLife[];
  signals: Signal[];
}

export function emptyModel(): HistoryModel {
  return { from: 0, last: 0, ended: false, work: [], sessions: [], signals: [] };
}

export function foldHistory(events: readonly DatedEvent[]): HistoryModel {
  const model = emptyModel();
  const byId = new Map<number, Work>();
  const sessions = new Map<string, SessionLife>();
  model.from = events[0]?.at ?? 0;
  for (const { at, event } of events) {
    model.last = Math.max(model.last, at);
    foldEvent(model, byId, sessions, event, at);
  }
  return model;
}

type Sessions = Map<string, SessionLife>;

function foldEvent(
  model: HistoryModel,
  byId: Map<number, Work>,
  sessions: Sessions,
  event: HistoryEvent,
  at: number,
): void {
  const begin = (work: Omit<Work, "id" | "from" | "to" | "state" | "attempts">) => {
    const begun: Work = { id: event.id, from: at, to: undefined, state: "open", attempts: [], ...work };
    byId.set(event.id, begun);
    model.work.push(begun);
  };
  const end = (of: number, state: WorkState, more: Partial<Work> = {}) => {
    const work = byId.get(of);
    if (work) Object.assign(work, { to: at, state, ...more });
  };
  switch (event.kind) {
    case "instance.started":
      for (const carried of [...(event.carried?.sessions ?? []), ...(event.granted ?? [])]) {
        const life = open(model, sessions, carried.sessionId, carried.type, at);
        if ("on" in carried.phase && carried.phase.on) hold(life, "held", at, carried.phase.on);
      }
      return;
    case "instance.completed":
    case "instance.failed":
    case "instance.cancelled":
    case "instance.terminated":
    case "instance.continued":
      model.ended = true;
      for (const life of sessions.values()) {
        closeSegment(life, at);
        life.to ??= at;
      }
      return;
    case "activity.scheduled": {
      const { target } = event;
      if (target.kind === "queue")
        begin({ kind: "activity", name: event.name, queue: target.queue, input: event.input });
      else if (target.kind === "local")
        begin({ kind: "activity", name: event.name, local: true, input: event.input });
      else begin({ kind: "call", name: event.name, sessionId: target.sessionId, input: event.input });
      const work = byId.get(event.id);
      if (work && event.by) work.byEngine = true;
      return;
    }
    case "activity.started": {
      const work = byId.get(event.of);
      if (work) Object.assign(work, { startedAt: at, workerId: event.workerId });
      return;
    }
    case "activity.attempt_failed":
      byId.get(event.of)?.attempts.push({
        at,
        message: `${event.error.code}: ${event.error.message}`,
        retryAt: event.retryAt,
      });
      return;
    case "activity.completed":
      return end(event.of, "completed", {
        ...(event.workerId === undefined ? {} : { workerId: event.workerId }),
        ...(event.epoch === undefined ? {} : { epoch: event.epoch }),
      });
    case "activity.failed":
    case "child.failed":
      return end(event.of, "failed", {
        error: `${event.error.code}: ${event.error.message}`,
        failure: event.error,
      });
    case "activity.cancelled":
    case "timer.cancelled":
    case "child.cancelled":
      return end(event.of, "cancelled");
    case "timer.created":
      return begin({ kind: "timer", name: "timer", fireAt: event.fireAt });
    case "timer.fired":
    case "child.completed":
      return end(event.of, "completed");
    case "child.scheduled":
      begin({ kind: "child", name: event.name, childId: event.childId, input: event.input });
      // The orchestration does not wait for a detached child: the item is done when the child is started.
      if (event.mode === "detached") end(event.id, "completed");
      return;
    case "signal.received":
      model.signals.push({ id: event.id, at, name: event.name });
      return;
    case "update.accepted":
      model.signals.push({ id: event.id, at, name: `update ${event.name}` });
      return;
    case "update.completed":
    case "update.failed":
      return;
    case "cancel.requested":
      model.signals.push({ id: event.id, at, name: "cancel" });
      return;
    case "side_effect.recorded":
    case "patch.marked":
    case "end.requested":
    case "status.set":
    case "pool.joined":
      return;
    case "pool.lent": {
      const { sessionId, type, phase } = event.member;
      const life = open(model, sessions, sessionId, type, at);
      life.lentFor = event.of;
      if ("on" in phase && phase.on) hold(life, "held", at, phase.on);
      return;
    }
    case "pool.left": {
      const life = [...sessions.values()].find(
        ({ lentFor }) => lentFor !== undefined && lentFor === event.of,
      );
      if (!life) return;
      closeSegment(life, at);
      life.to ??= at;
      life.marks.push({ at, kind: "closed", text: "given back", id: event.id });
      return;
    }
    default:
      return foldSession(model, sessions, event, at);
  }
}

type SessionEvent = Extract<HistoryEvent, { kind: `session.${string}` }>;

function foldSession(model: HistoryModel, sessions: Sessions, event: SessionEvent, at: number): void {
  const life =
    sessions.get(event.sessionId) ??
    open(model, sessions, event.sessionId, event.kind === "session.opened" ? event.type : "session", at);
  const mark = (kind: Mark["kind"], text: string): void => {
    life.marks.push({ at, kind, text, id: event.id });
  };
  switch (event.kind) {
    case "session.opened":
      return;
    case "session.requested":
      closeSegment(life, at);
      life.segments.push({ phase: "waiting", from: at, to: undefined, attachment: event.attachment });
      return;
    case "session.claimed":
      hold(life, "starting", at, event.on);
      return;
    case "session.activated":
      if (event.on.attachment > 1) {
        mark(
          "reclaimed",
          `reclaimed by ${event.on.workerId}${event.warm ? ", still warm" : ""}${event.restored ? ", from a checkpoint" : ""}`,
        );
      }
      hold(life, "held", at, event.on);
      return;
    case "session.init_failed":
      closeSegment(life, at);
      mark("init failed", `init failed: ${event.error.message}`);
      return;
    case "session.failed":
      closeSegment(life, at);
      life.to = at;
      mark("failed", `failed: ${event.error.message}`);
      return;
    case "session.lost": {
      closeSegment(life, at);
      const who = event.on ? ` by ${event.on.workerId} (epoch ${shortEpoch(event.on.epoch)})` : "";
      mark("lost", `lost${who}: ${event.reason}${event.detail ? `, ${event.detail}` : ""}`);
      return;
    }
    case "session.parked":
      closeSegment(life, at);
      life.segments.push({ phase: "parked", from: at, to: undefined });
      return;
    case "session.checkpointed":
      mark(
        "checkpoint",
        `checkpoint of ${event.checkpoint.bytes} bytes after ${event.checkpoint.calls} calls`,
      );
      return;
    case "session.metadata_set":
    case "session.metadata_reported":
      return mark("metadata", `metadata ${JSON.stringify(event.change)}`);
    case "session.blob_changed":
      return mark(
        "blob",
        `${event.name} ${event.stored ? `stored, ${event.stored.bytes} bytes` : "deleted"}`,
      );
    case "session.closed":
      closeSegment(life, at);
      life.to = at;
      mark("closed", "closed");
      return;
    case "session.lent":
      return mark("lent", `lent to ${event.lending.to.instanceId}`);
    case "session.returned":
      return mark("returned", "given back");
  }
}

function open(
  model: HistoryModel,
  sessions: Sessions,
  sessionId: string,
  type: string,
  at: number,
): SessionLife {
  const life: SessionLife = { sessionId, type, from: at, to: undefined, segments: [], marks: [] };
  sessions.set(sessionId, life);
  model.sessions.push(life);
  return life;
}

function hold(
  life: SessionLife,
  phase: "starting" | "held",
  at: number,
  on: { workerId: string; epoch: number; attachment: number },
): void {
  closeSegment(life, at);
  const { workerId, epoch, attachment } = on;
  life.segments.push({ phase, from: at, to: undefined, workerId, epoch, attachment });
}

function closeSegment(life: SessionLife, at: number): void {
  const last = life.segments.at(-1);
  if (last && last.to === undefined) last.to = at;
}
