/** Instances and histories as text for people. Pure. */
import type { InstanceStatus } from "../../../schemas/index.ts";
import type { HistoryEntry, InstanceView } from "../../../shared/sdk/index.ts";
import { shortEpoch } from "../../../shared/wording/index.ts";
import { type Paint, plain, type Style } from "../terminal/paint.ts";
import { brief, pairs, span, table, time } from "../terminal/text.ts";

export const statusStyles: Readonly<Record<InstanceStatus, Style>> = {
  pending: "dim",
  running: "blue",
  parked: "yellow",
  completed: "green",
  failed: "red",
  cancelled: "magenta",
  terminated: "red",
};

const tookMs = ({ startedAt, endedAt }: InstanceView): number | undefined =>
  startedAt === undefined || endedAt === undefined ? undefined : endedAt - startedAt;

export const instanceTable = (views: readonly InstanceView[], paint: Paint = plain): string =>
  table(
    views,
    [
      { title: "ID", value: (view) => view.instanceId },
      { title: "ORCHESTRATION", value: (view) => view.name },
      { title: "STATUS", value: (view) => view.status, style: (view) => statusStyles[view.status] },
      { title: "STARTED", value: (view) => time(view.startedAt) },
      { title: "TOOK", value: (view) => span(tookMs(view)), align: "right" },
      { title: "EVENTS", value: (view) => view.events, align: "right" },
    ],
    paint,
  );

export const shownInstance = (view: InstanceView, paint: Paint = plain): string =>
  pairs(
    [
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
    ],
    paint,
  );

export function historyTable(entries: readonly HistoryEntry[], paint: Paint = plain): string {
  const from = entries[0]?.at ?? 0;
  return table(
    entries,
    [
      { title: "EXEC", value: (entry) => entry.execution, align: "right" },
      { title: "ID", value: (entry) => entry.id, align: "right" },
      { title: "AFTER", value: (entry) => span(entry.at - from), align: "right" },
      { title: "EVENT", value: (entry) => entry.kind, style: eventStyle },
      { title: "DETAILS", value: detailsOf },
    ],
    paint,
  );
}

export function eventStyle({ kind }: HistoryEntry): Style | undefined {
  if (/failed$|\.lost$|terminated$/.test(kind)) return "red";
  if (/completed$|\.fired$|\.activated$/.test(kind)) return "green";
  return /cancelled$|requested$/.test(kind) ? "magenta" : undefined;
}

/** Fields that other columns show, or that only programs need. */
const notShown: ReadonlySet<string> = new Set([
  ...["execution", "at", "id", "kind", "retry", "timeouts", "options", "traceparent"],
]);

/** The fields specific to an event's kind, as text. */
export const detailsOf = (entry: HistoryEntry): string =>
  Object.entries(entry)
    .filter(([name, value]) => !notShown.has(name) && value !== undefined)
    .map(([name, value]) => [name, shortly(name, value)] as const)
    .filter(([, text]) => text !== "")
    .map(([name, text]) => `${name}=${text}`)
    .join(" ");

function shortly(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  if (name === "epoch" && typeof value === "number") return shortEpoch(value);
  if (typeof value === "number")
    return name.endsWith("At") ? (time(value) ?? "") : String(Math.round(value * 10) / 10);
  if (isObject(value)) {
    if ("json" in value && Object.keys(value).length === 1) return brief(value.json, 60);
    if ("blob" in value && isObject(value.blob)) return `<${value.blob.bytes} bytes>`;
    if ("workerId" in value && "epoch" in value)
      return `${value.workerId}/${typeof value.epoch === "number" ? shortEpoch(value.epoch) : ""}`;
    if (value.kind === "queue") return String(value.queue);
    if (value.kind === "session") return String(value.sessionId);
    if ("code" in value && "message" in value) return `${value.message} (${value.code})`;
  }
  return brief(value, 60);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
