/** What an instance has done and waits for, as a list of items taken from its timeline. Pure. */
import type { Failure, InstanceStatus } from "../../../schemas/index.ts";
import type { HistoryEntry } from "../../../shared/sdk/index.ts";
import {
  foldTimeline,
  type InstanceTimeline,
  type PoolUse,
  type Received,
  type SessionLife,
  type Standing,
  type Work,
  type WorkState,
} from "../../../shared/timeline/index.ts";
import { failureText } from "../../../shared/wording/index.ts";
import { brief } from "../terminal/text.ts";

export interface Item {
  /** Id of the event that began the item. */
  readonly id: number;
  readonly kind: "activity" | "call" | "timer" | "child" | "session" | "signal" | "update" | "pool";
  readonly label: string;
  readonly standing: Standing;
  readonly note: string;
  readonly from: number;
  readonly to?: number | undefined;
  /** The time at which the item continues by itself. */
  readonly dueAt?: number | undefined;
  /** The session on which the work runs. */
  readonly on?: string | undefined;
  readonly childId?: string | undefined;
  readonly sessionId?: string | undefined;
}

export interface Branch {
  readonly instanceId: string;
  name: string | undefined;
  status: InstanceStatus;
  execution: number;
  startedAt: number | undefined;
  endedAt: number | undefined;
  note: string;
  /** Items of the latest execution. */
  items: Item[];
}

/** `known`: the status in the read model; the history does not record that an instance is parked. */
export function branchOf(
  instanceId: string,
  entries: readonly HistoryEntry[],
  known?: { status: InstanceStatus; name?: string | undefined; error?: Failure | undefined },
): Branch {
  const timeline = foldTimeline(entries.map((event) => ({ at: event.at, event })));
  const { status, startedAt, endedAt, note } = timeline;
  const parked = known?.status === "parked" && status === "running";
  return {
    ...{ instanceId, startedAt, endedAt },
    name: timeline.name ?? known?.name,
    status: parked ? "parked" : status,
    execution: entries.at(-1)?.execution ?? 0,
    note: parked ? (known.error ? failureText(known.error) : "") : noteText(note),
    items: itemsOf(timeline),
  };
}

const noteText = (note: InstanceTimeline["note"]): string =>
  typeof note === "string" ? note : "json" in note ? brief(note.json, 200) : "";

function itemsOf(timeline: InstanceTimeline): Item[] {
  const { work, sessions, received, pools, endedAt } = timeline;
  const items = [
    ...work.map(workItem),
    // A member that a pool lends is part of the item of that pool.
    ...sessions.filter(({ lentFor }) => lentFor === undefined).map(sessionItem),
    ...received.filter(({ kind }) => kind !== "cancel").map(receivedItem),
    ...pools.map((use) => poolItem(use, sessions)),
  ].sort((a, b) => a.id - b.id);
  if (endedAt === undefined) return items;
  return items.map((item) =>
    item.to === undefined && item.note !== detached
      ? { ...item, standing: "cancelled", note: "", to: endedAt, dueAt: undefined }
      : item,
  );
}

const standings: Readonly<Record<WorkState, Standing>> = {
  ...{ open: "open", completed: "done", failed: "failed", cancelled: "cancelled" },
};

const detached = "detached";

function workItem(work: Work): Item {
  const { id, kind, name, from, to, state, childId, sessionId } = work;
  const item = { ...{ id, kind, from, childId }, label: labelOf(work), on: sessionId };
  // Its parent does not know how a detached child goes on.
  if (work.detached) return { ...item, standing: "open", note: detached };
  if (state !== "open")
    return { ...item, to, standing: standings[state], note: work.failure ? failureText(work.failure) : "" };
  if (kind === "timer") return { ...item, label: name, standing: "waiting", note: "", dueAt: work.fireAt };
  const last = work.attempts.at(-1);
  if (work.retryAt !== undefined && last) {
    const note = `attempt ${last.attempt} failed: ${failureText(last.error)}`;
    return { ...item, standing: "waiting", note, dueAt: work.retryAt };
  }
  return { ...item, standing: "open", note: work.workerId === undefined ? "" : `on ${work.workerId}` };
}

function labelOf({ name, childId, byEngine, local }: Work): string {
  if (childId !== undefined) return `${childId} ${name}`;
  return `${name}${byEngine ? " (rebuild)" : local ? " (local)" : ""}`;
}

const sessionItem = ({ id, sessionId, type, standing, note, from, to }: SessionLife): Item => ({
  ...{ id, kind: "session", label: `${sessionId} ${type}`, standing, note, from, to, sessionId },
});

function receivedItem({ id, kind, name, at, answered }: Received): Item {
  const item = { id, label: name, from: at };
  if (kind !== "update") return { ...item, kind: "signal", standing: "done", note: "", to: at };
  if (!answered) return { ...item, kind, standing: "open", note: "" };
  const { failure } = answered;
  const note = failure ? failureText(failure) : "";
  return { ...item, kind, standing: failure ? "failed" : "done", note, to: answered.at };
}

function poolItem({ id, poolId, from, to }: PoolUse, sessions: readonly SessionLife[]): Item {
  const item = { id, kind: "pool" as const, label: poolId, from, to };
  const lent = sessions.findLast(({ lentFor }) => lentFor === id);
  if (to !== undefined || !lent) return { ...item, standing: to === undefined ? "open" : "done", note: "" };
  return { ...item, standing: lent.standing, note: lent.note };
}
