/** Instances and histories as people read them. */
import type { HistoryEntry, InstanceView } from "../../shared/sdk/index.ts";
import { brief, pairs, span, table, time } from "./output.ts";

const tookMs = ({ startedAt, endedAt }: InstanceView): number | undefined =>
  startedAt === undefined || endedAt === undefined ? undefined : endedAt - startedAt;

export const instanceTable = (views: readonly InstanceView[]): string =>
  table(views, [
    { title: "ID", value: (view) => view.instanceId },
    { title: "ORCHESTRATION", value: (view) => view.name },
    { title: "STATUS", value: (view) => view.status },
    { title: "STARTED", value: (view) => time(view.startedAt) },
    { title: "TOOK", value: (view) => span(tookMs(view)), align: "right" },
    { title: "EVENTS", value: (view) => view.events, align: "right" },
  ]);

export const shownInstance = (view: InstanceView): string =>
  pairs([
    ["id", view.instanceId],
    ["orchestration", view.name],
    ["status", view.status],
    ["execution", view.execution],
    ["events", view.events],
    ["started", time(view.startedAt)],
    ["ended", time(view.endedAt)],
    ["took", span(tookMs(view))],
    ["parent", view.parent?.instanceId],
    ["sessions", view.sessions?.join(", ")],
    ["input", brief(view.input, 1000)],
    ["progress", brief(view.customStatus, 1000)],
    ["output", brief(view.output, 1000)],
    ["error", view.error && `${view.error.message} (${view.error.code})`],
  ]);

export function historyTable(entries: readonly HistoryEntry[]): string {
  const from = entries[0]?.at ?? 0;
  return table(entries, [
    { title: "EXEC", value: (entry) => entry.execution, align: "right" },
    { title: "ID", value: (entry) => entry.id, align: "right" },
    { title: "AFTER", value: (entry) => span(entry.at - from), align: "right" },
    { title: "EVENT", value: (entry) => entry.kind },
    { title: "DETAILS", value: detailsOf },
  ]);
}

/** What is particular about an event, without what the other columns say. */
function detailsOf({ execution: _e, at: _a, id: _i, kind: _k, ...rest }: HistoryEntry): string {
  const parts = Object.entries(rest).flatMap(([name, value]) => {
    if (value === undefined) return [];
    if (typeof value === "string" || typeof value === "number") return [`${name}=${value}`];
    return [`${name}=${brief(value, 60)}`];
  });
  return parts.join(" ");
}
