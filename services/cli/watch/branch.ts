/** What an instance has done and waits for, as a list of items built from its history. Pure. */
import type { EventOf, Failure, InstanceStatus } from "../../../schemas/index.ts";
import type { HistoryEntry } from "../../../shared/sdk/index.ts";
import { phaseWord, shortEpoch } from "../../../shared/wording/index.ts";
import { brief } from "../terminal/text.ts";

/** `open`: in progress. `waiting`: for a time, a worker or a signal. */
export type Mark = "open" | "waiting" | "done" | "failed" | "cancelled";

export interface Item {
  /** Id of the event that began the item. */
  readonly id: number;
  readonly kind: "activity" | "call" | "timer" | "child" | "session" | "signal" | "update" | "pool";
  label: string;
  mark: Mark;
  note: string;
  readonly from: number;
  to?: number | undefined;
  /** When the item continues by itself. */
  dueAt?: number | undefined;
  /** The session on which the work runs. */
  readonly on?: string | undefined;
  readonly childId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** How often the session's holder was lost, and the text about the latest loss. */
  losses?: { count: number; last: string } | undefined;
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
  const fold = new Fold(instanceId);
  for (const entry of entries) fold.apply(entry);
  const { branch } = fold;
  branch.name ??= known?.name;
  if (known?.status === "parked" && branch.status === "running") {
    branch.status = "parked";
    branch.note = known.error ? reason(known.error) : "";
  }
  return branch;
}

const holder = ({ workerId, epoch }: { workerId: string; epoch: number }): string =>
  `${workerId}, epoch ${shortEpoch(epoch)}`;

/** Shown as long as the session has this holder: people who look only now see that it is not the first. */
const afterLoss = ({ losses }: Item): string =>
  losses === undefined
    ? ""
    : `, claimed anew after ${losses.count === 1 ? "a loss" : `${losses.count} losses`}: ${losses.last}`;

const reason = ({ message, code }: Failure): string => `${message} (${code})`;

class Fold {
  readonly branch: Branch;
  readonly #byEvent = new Map<number, Item>();
  readonly #sessions = new Map<string, Item>();
  readonly #pools = new Map<string, Item>();

  constructor(instanceId: string) {
    this.branch = {
      instanceId,
      name: undefined,
      status: "pending",
      execution: 0,
      startedAt: undefined,
      endedAt: undefined,
      note: "",
      items: [],
    };
  }

  apply(entry: HistoryEntry): void {
    const { branch } = this;
    switch (entry.kind) {
      case "instance.started":
        return this.#started(entry);
      case "instance.completed":
        return this.#over(entry.at, "completed", "");
      case "instance.failed":
        return this.#over(entry.at, "failed", reason(entry.error));
      case "instance.cancelled":
        return this.#over(entry.at, "cancelled", entry.reason ?? "");
      case "instance.terminated":
        return this.#over(entry.at, "terminated", entry.reason ?? "");
      case "cancel.requested":
        branch.note = `asked to cancel${entry.reason === undefined ? "" : `: ${entry.reason}`}`;
        return;
      case "status.set":
        branch.note = "json" in entry.status ? brief(entry.status.json, 200) : "";
        return;
      case "signal.received":
        this.#add(entry, { kind: "signal", label: entry.name, mark: "done", to: entry.at });
        return;
      case "update.accepted":
        this.#add(entry, { kind: "update", label: entry.name, mark: "open" });
        return;
      case "timer.created":
        this.#add(entry, { kind: "timer", label: "timer", mark: "waiting", dueAt: entry.fireAt });
        return;
      case "child.scheduled":
        this.#add(entry, {
          kind: "child",
          label: `${entry.childId} ${entry.name}`,
          mark: "open",
          childId: entry.childId,
          ...(entry.mode === "detached" ? { note: "detached" } : {}),
        });
        return;
      case "activity.scheduled":
        return this.#scheduled(entry);
      case "activity.started":
        return this.#change(entry.of, (item) => {
          item.note = `on ${entry.workerId}`;
        });
      case "activity.attempt_failed":
        return this.#change(entry.of, (item) => {
          item.mark = "waiting";
          item.dueAt = entry.retryAt;
          item.note = `attempt ${entry.attempt} failed: ${reason(entry.error)}`;
        });
      case "activity.completed":
      case "update.completed":
      case "child.completed":
      case "timer.fired":
        return this.#end(entry.of, entry.at, "done", "");
      case "activity.failed":
      case "update.failed":
      case "child.failed":
        return this.#end(entry.of, entry.at, "failed", reason(entry.error));
      case "activity.cancelled":
      case "child.cancelled":
      case "timer.cancelled":
        return this.#end(entry.of, entry.at, "cancelled", "");
      case "pool.joined": {
        const item = this.#add(entry, { kind: "pool", label: entry.poolId, mark: "open" });
        this.#pools.set(entry.poolId, item);
        return;
      }
      case "pool.lent": {
        const { sessionId, phase } = entry.member;
        const where = "on" in phase && phase.on ? `${sessionId} on ${phase.on.workerId}` : sessionId;
        this.#change(entry.of, (item) => {
          item.note = where;
          this.#sessions.set(sessionId, item);
        });
        return;
      }
      case "pool.left": {
        const of = entry.of ?? this.#pools.get(entry.poolId)?.id;
        if (of !== undefined) this.#end(of, entry.at, "done", "");
        return;
      }
      case "session.opened": {
        const { sessionId, type } = entry;
        const label = `${sessionId} ${type}`;
        const item = this.#add(entry, { kind: "session", label, mark: "waiting", note: "opened", sessionId });
        this.#sessions.set(sessionId, item);
        return;
      }
      case "instance.continued":
      case "side_effect.recorded":
      case "patch.marked":
      case "end.requested":
        return;
      default:
        return this.#session(entry);
    }
  }

  #started(entry: HistoryEntry & EventOf<"instance.started">): void {
    const { branch } = this;
    // Items of an earlier execution are over; carried-over ones are part of the start.
    branch.items = [];
    this.#byEvent.clear();
    this.#sessions.clear();
    this.#pools.clear();
    branch.name = entry.name;
    branch.status = "running";
    branch.execution = entry.execution;
    branch.startedAt = entry.carried?.startedAt ?? entry.at;
    branch.note = "";
    const brought = [...(entry.carried?.sessions ?? []), ...(entry.granted ?? [])];
    for (const { sessionId, type, phase } of brought) {
      const held = phase.kind === "active" || phase.kind === "claimed" || phase.kind === "rebuilding";
      const item: Item = {
        id: 0,
        kind: "session",
        label: `${sessionId} ${type}`,
        mark: held ? "open" : "waiting",
        note: held ? `${phase.kind} on ${holder(phase.on)}` : phaseWord(phase.kind),
        from: entry.at,
        sessionId,
      };
      branch.items.push(item);
      this.#sessions.set(sessionId, item);
    }
  }

  #scheduled(entry: HistoryEntry & EventOf<"activity.scheduled">): void {
    const { target } = entry;
    const aside = entry.by === "engine" ? " (rebuild)" : target.kind === "local" ? " (local)" : "";
    const label = `${entry.name}${aside}`;
    const onSession = target.kind === "session";
    const kind = onSession && target.call ? "call" : "activity";
    this.#add(entry, { kind, label, mark: "open", on: onSession ? target.sessionId : undefined });
  }

  #session(entry: Extract<HistoryEntry, { kind: `session.${string}` }>): void {
    const item = this.#sessions.get(entry.sessionId);
    if (!item) return;
    const set = (mark: Mark, note: string) => {
      item.mark = mark;
      item.note = note;
    };
    switch (entry.kind) {
      case "session.requested":
        set(
          "waiting",
          `${item.losses ? `${item.losses.last}; ` : ""}waits for a worker${entry.attachment > 1 ? ` (attachment ${entry.attachment})` : ""}`,
        );
        item.dueAt = undefined;
        return;
      case "session.claimed":
        return set("waiting", `init on ${holder(entry.on)}${afterLoss(item)}`);
      case "session.activated":
        return set("open", `active on ${holder(entry.on)}${afterLoss(item)}`);
      case "session.init_failed":
        return set("waiting", `init failed: ${reason(entry.error)}`);
      case "session.lost":
        return set("failed", this.#lost(item, entry));
      case "session.parked":
        return set("waiting", "idle, its state is put away until the next call");
      case "session.failed":
        return this.#end(item.id, entry.at, "failed", reason(entry.error), item);
      case "session.closed":
        return this.#end(item.id, entry.at, "done", "closed", item);
      case "session.lent":
        return set("open", `lent to ${entry.lending.to.instanceId}`);
      case "session.returned":
        return set("open", "given back");
      case "session.opened":
      case "session.checkpointed":
      case "session.metadata_set":
      case "session.metadata_reported":
      case "session.blob_changed":
        return;
    }
  }

  #lost(item: Item, { on, reason, detail }: EventOf<"session.lost">): string {
    const by = on ? ` by ${on.workerId}` : "";
    const last = `lost${by} (${reason}${detail === undefined ? "" : `: ${detail}`})`;
    item.losses = { count: (item.losses?.count ?? 0) + 1, last };
    return last;
  }

  #add(
    entry: HistoryEntry,
    fields: Pick<Item, "kind" | "label" | "mark"> & Partial<Omit<Item, "id" | "from">>,
  ): Item {
    const item: Item = { note: "", ...fields, id: entry.id, from: entry.at };
    this.branch.items.push(item);
    this.#byEvent.set(entry.id, item);
    return item;
  }

  #change(of: number, change: (item: Item) => void): void {
    const item = this.#byEvent.get(of);
    if (item) change(item);
  }

  #end(of: number, at: number, mark: Mark, note: string, known = this.#byEvent.get(of)): void {
    if (!known || known.to !== undefined) return;
    known.mark = mark;
    known.note = note;
    known.to = at;
    known.dueAt = undefined;
  }

  #over(at: number, status: InstanceStatus, note: string): void {
    const { branch } = this;
    branch.status = status;
    branch.endedAt = at;
    branch.note = note;
    for (const item of branch.items) {
      if (item.to !== undefined) continue;
      if (item.kind === "child" && item.note === "detached") continue;
      this.#end(item.id, at, item.kind === "session" ? "done" : "cancelled", "", item);
    }
  }
}
