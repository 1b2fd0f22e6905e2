/** Workers as text for people. Pure. */
import type { WorkerInfo } from "../../../schemas/index.ts";
import { shortEpoch } from "../../../shared/wording/index.ts";
import { type Paint, plain } from "../terminal/paint.ts";
import { brief, megabytes, pairs, span, table, time } from "../terminal/text.ts";

export const usedOf = ({ used, max }: { used: number; max: number }): string => `${used}/${max}`;

const memory = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`;
const ago = (at: number, now: number): string => `${span(Math.max(0, now - at))} ago`;

export const workerTable = (workers: readonly WorkerInfo[], now: number, paint: Paint = plain): string =>
  table(
    workers,
    [
      { title: "ID", value: (worker) => worker.workerId },
      { title: "HOST", value: (worker) => worker.host },
      { title: "PID", value: (worker) => worker.pid, align: "right" },
      {
        title: "STATE",
        value: (worker) => (worker.draining ? "draining" : "serving"),
        style: (worker) => (worker.draining ? "yellow" : "green"),
      },
      { title: "ACTIVITIES", value: (worker) => usedOf(worker.slots.activities), align: "right" },
      { title: "SESSIONS", value: (worker) => usedOf(worker.slots.sessions), align: "right" },
      { title: "CALLS", value: (worker) => usedOf(worker.slots.calls), align: "right" },
      { title: "TAGS", value: (worker) => worker.tags.join(",") },
      { title: "DEVICE", value: (worker) => worker.device },
      { title: "MEMORY", value: (worker) => memory(worker.rssBytes), align: "right" },
      { title: "SEEN", value: (worker) => ago(worker.seenAt, now), align: "right" },
    ],
    paint,
  );

export function shownWorker(worker: WorkerInfo, now: number, paint: Paint = plain): string {
  const { slots, resources } = worker;
  const facts = pairs(
    [
      ["id", worker.workerId],
      ["node", worker.nodeId],
      ["host", `${worker.host}, pid ${worker.pid}`],
      ["state", worker.draining ? "draining" : "serving"],
      ["build", worker.buildId],
      ["resource", worker.resourceId],
      ["device", worker.device],
      ["tags", worker.tags.join(", ")],
      ["resources", resourcesOf(resources)],
      ["activity slots", usedOf(slots.activities)],
      ["session slots", usedOf(slots.sessions)],
      ["call slots", usedOf(slots.calls)],
      ["activities", worker.activities.map(({ queue, name }) => `${queue}/${name}`).join(", ")],
      ["session types", worker.sessionTypes.map((type) => typeOf(worker, type)).join(", ")],
      ["memory", megabytes(worker.rssBytes)],
      ["event loop", `${worker.eventLoopDelayMs.toFixed(1)} ms late`],
      ["started", time(worker.startedAt)],
      ["seen", ago(worker.seenAt, now)],
    ],
    paint,
  );
  const parts = [facts];
  if (worker.models.length > 0) parts.push(models(worker, paint));
  if (worker.sessions.length > 0) parts.push(held(worker, now, paint));
  return parts.join("\n\n");
}

const resourcesOf = ({ total, used }: WorkerInfo["resources"]): string =>
  Object.entries(total)
    .map(([name, all]) => `${name} ${used[name] ?? 0}/${all}`)
    .join(", ");

function typeOf({ perType }: WorkerInfo, type: string): string {
  const room = perType[type];
  return room ? `${type} ${usedOf(room)}` : type;
}

const models = ({ models }: WorkerInfo, paint: Paint): string =>
  table(
    models,
    [
      { title: "MODEL", value: (model) => model.name },
      { title: "DEVICE", value: (model) => model.device },
      { title: "LOADED IN", value: (model) => span(model.loadMs), align: "right" },
      { title: "SIZE", value: (model) => model.bytes && megabytes(model.bytes), align: "right" },
    ],
    paint,
  );

const held = ({ sessions }: WorkerInfo, now: number, paint: Paint): string =>
  table(
    sessions,
    [
      { title: "SESSION", value: (session) => session.sessionId },
      { title: "TYPE", value: (session) => session.type },
      { title: "EPOCH", value: (session) => shortEpoch(session.epoch), align: "right" },
      { title: "CALLS", value: (session) => session.calls, align: "right" },
      { title: "RUNNING", value: (session) => session.running, align: "right" },
      { title: "WAITING", value: (session) => session.queued, align: "right" },
      { title: "HELD FOR", value: (session) => span(Math.max(0, now - session.since)), align: "right" },
      { title: "SNAPSHOT", value: (session) => brief(session.snapshot, 60) },
    ],
    paint,
  );
