/** What is wrong, in sentences an operator can act on. Silence means nothing is. Pure. */
import { z } from "zod";
import type { InstanceStatus, ServiceInfo, WorkerInfo } from "../../../schemas/index.ts";
import { type FleetView, heldBackText, versionsText } from "../../../shared/fleet/index.ts";
import type { SessionRow } from "./rows.ts";
import type { StreamsView } from "./stream-watch.ts";
import { whyWaiting } from "./why-waiting.ts";

export const Trouble = z.strictObject({
  level: z.enum(["error", "warning"]),
  code: z.string(),
  message: z.string(),
  /** What to do about it. */
  hint: z.string().optional(),
  /** Where in the dashboard to look. */
  link: z.string().optional(),
});
export type Trouble = z.infer<typeof Trouble>;

export interface TroubleInput {
  now: number;
  bus: { connected: boolean; awaySince?: number | undefined };
  counts: Readonly<Record<InstanceStatus, number>>;
  sessions: readonly SessionRow[];
  workers: readonly WorkerInfo[];
  services: readonly ServiceInfo[];
  streams: StreamsView | undefined;
  fleet: FleetView;
  partitions: { wanted: number; held: number };
  lostPerMinute: number;
  failedPerMinute: number;
}

const waitingLongMs = 3_000;
const silentMs = 20_000;
const stalledMs = 500;
const longQueue = 1_000;

const checks: readonly ((input: TroubleInput) => readonly Trouble[])[] = [
  busAway,
  missingServices,
  unheldPartitions,
  sessionsNobodyTakes,
  tasksNobodyTakes,
  parkedInstances,
  sessionsLost,
  deadLetters,
  longQueues,
  strugglingWorkers,
  heldBack,
];

function heldBack({ fleet }: TroubleInput): Trouble[] {
  if (fleet.heldBackBy.length === 0) return [];
  return [
    {
      level: "warning",
      code: "generation_held_back",
      message: `Generation ${fleet.written} is written instead of ${fleet.newest}, held back by ${heldBackText(fleet)}. Versions: ${versionsText(fleet)}.`,
      hint: "Finish the upgrade, and take HOLDFAST_GENERATION away where it is set.",
    },
  ];
}

/** Errors first. While the bus is away nothing else is known well enough to be said. */
export function findTroubles(input: TroubleInput): Trouble[] {
  const away = busAway(input);
  if (away.length > 0) return away;
  const found = checks.flatMap((check) => check(input));
  return [...found.filter(isError), ...found.filter((trouble) => !isError(trouble))];
}

const isError = (trouble: Trouble): boolean => trouble.level === "error";

function busAway({ bus, now }: TroubleInput): Trouble[] {
  if (bus.connected) return [];
  const since = bus.awaySince === undefined ? "" : ` for ${seconds(now - bus.awaySince)}`;
  return [
    {
      level: "error",
      code: "bus_away",
      message: `NATS has been away${since}: what you see is what was known before`,
      hint: "Check that nats-server runs and that NATS_URL points at it.",
    },
  ];
}

function missingServices({ services, counts, streams }: TroubleInput): Trouble[] {
  const found: Trouble[] = [];
  const has = (name: string) => services.some((info) => info.service === name);
  const waiting = (streams?.streams ?? []).find((stream) => stream.name.endsWith("INBOX"))?.messages ?? 0;
  if (!has("orchestrator")) {
    const live = counts.running + counts.pending;
    const stake =
      waiting > 0
        ? `: ${count(waiting, "message")} in the inbox`
        : live > 0
          ? `: ${count(live, "instance")} stand still`
          : "";
    found.push({
      level: "error",
      code: "no_orchestrator",
      message: `No orchestrator is running${stake}`,
      hint: "Start one: holdfast orchestrator",
    });
  }
  if (!has("watcher")) {
    found.push({
      level: "error",
      code: "no_watcher",
      message: "No watcher is running: sessions of workers that die are not reported lost",
      hint: "Start one: holdfast watcher",
    });
  } else if (!services.some((info) => info.service === "watcher" && info.acting !== false)) {
    found.push({ level: "warning", code: "no_acting_watcher", message: "No watcher has taken the lead yet" });
  }
  return found;
}

function unheldPartitions({ partitions, services }: TroubleInput): Trouble[] {
  const missing = partitions.wanted - partitions.held;
  if (missing <= 0 || !services.some((info) => info.service === "orchestrator")) return [];
  return [
    {
      level: "warning",
      code: "partitions_unheld",
      message: `${missing} of ${partitions.wanted} partitions have no owner: their instances wait`,
      hint: "They move within one lease time. If it stays, look at the orchestrators' logs.",
    },
  ];
}

function sessionsNobodyTakes({ sessions, workers, now }: TroubleInput): Trouble[] {
  const stuck = new Map<string, { type: string; message: string; isQuota: boolean; count: number }>();
  for (const session of sessions) {
    if (session.phase !== "opening" || now - session.updatedAt < waitingLongMs) continue;
    const waiting = whyWaiting(session, workers);
    if (waiting.kind !== "stuck") continue;
    const key = `${session.type} ${waiting.message}`;
    const { message, why } = waiting;
    const group = stuck.get(key) ?? { type: session.type, message, isQuota: why === "at_quota", count: 0 };
    group.count++;
    stuck.set(key, group);
  }
  return [...stuck.values()].map((group) => ({
    // A quota that is reached does what it is there for.
    level: group.isQuota ? ("warning" as const) : ("error" as const),
    code: "session_unserved",
    message: `${count(group.count, "session")} of type ${group.type} ${group.count === 1 ? "waits" : "wait"}: ${group.message}`,
    hint: group.isQuota
      ? "They go on as others end. Close or park those sooner, or raise the quota."
      : "Start a worker that serves the type with these tags and resources.",
    link: `/sessions?type=${encodeURIComponent(group.type)}&phase=opening`,
  }));
}

function tasksNobodyTakes({ streams, workers }: TroubleInput): Trouble[] {
  const queue = streams?.streams.find((stream) => stream.name.endsWith("ACTIVITIES"));
  if (!queue || queue.messages === 0) return [];
  if (workers.length === 0) {
    return [
      {
        level: "error",
        code: "no_worker",
        message: `No worker is running: ${count(queue.messages, "task")} ${queue.messages === 1 ? "waits" : "wait"}`,
        hint: "Start one: holdfast worker",
        link: "/queues",
      },
    ];
  }
  const served = new Set(workers.flatMap((worker) => worker.activities.map((a) => `${a.queue}.${a.name}`)));
  return queue.consumers
    .filter((consumer) => consumer.pending > 0)
    .map((consumer) => ({ ...consumer, activity: consumer.filter.split(".").slice(-2).join(".") }))
    .filter((consumer) => !served.has(consumer.activity))
    .map((consumer) => ({
      level: "error" as const,
      code: "activity_unserved",
      message: `No worker runs activity ${consumer.activity.replace(".", " / ")}: ${count(consumer.pending, "task")} ${consumer.pending === 1 ? "waits" : "wait"}`,
      hint: "Start a worker whose application has this activity on this queue.",
      link: "/queues",
    }));
}

function parkedInstances({ counts }: TroubleInput): Trouble[] {
  if (counts.parked === 0) return [];
  return [
    {
      level: "error",
      code: "instances_parked",
      message: `${count(counts.parked, "instance")} parked: code and history disagree, or a turn could not finish`,
      hint: "Each says why. A fixed deployment resumes them.",
      link: "/orchestrations?status=parked",
    },
  ];
}

function sessionsLost({ lostPerMinute }: TroubleInput): Trouble[] {
  if (lostPerMinute === 0) return [];
  return [
    {
      level: "warning",
      code: "sessions_lost",
      message: `${count(lostPerMinute, "session")} lost in the last minute`,
      link: "/sessions",
    },
  ];
}

function deadLetters({ streams }: TroubleInput): Trouble[] {
  const dead = streams?.streams.find((stream) => stream.role === "dead")?.messages ?? 0;
  if (dead === 0) return [];
  return [
    {
      level: "warning",
      code: "dead_letters",
      message: `${count(dead, "dead letter")} ${dead === 1 ? "waits" : "wait"} for a decision`,
      link: "/queues",
    },
  ];
}

function longQueues({ streams }: TroubleInput): Trouble[] {
  return (streams?.streams ?? [])
    .filter((stream) => stream.role === "queue")
    .map((stream) => ({
      name: stream.name,
      pending: stream.consumers.reduce((sum, consumer) => sum + consumer.pending, 0),
    }))
    .filter((stream) => stream.pending > longQueue)
    .map((stream) => ({
      level: "warning" as const,
      code: "queue_long",
      message: `${stream.pending.toLocaleString("en")} messages wait in ${stream.name}`,
      hint: "More of the service that reads it, or more slots, shorten it.",
      link: "/queues",
    }));
}

function strugglingWorkers({ workers, now }: TroubleInput): Trouble[] {
  return workers.flatMap((worker): Trouble[] => {
    const link = `/workers/${worker.workerId}`;
    if (now - worker.seenAt > silentMs) {
      const message = `Worker ${worker.workerId} was last heard ${seconds(now - worker.seenAt)} ago`;
      return [{ level: "warning", code: "worker_silent", message, link }];
    }
    if (worker.eventLoopDelayMs > stalledMs) {
      const message = `Worker ${worker.workerId} is held up: its event loop is ${Math.round(worker.eventLoopDelayMs)} ms late`;
      const hint = 'Heavy code belongs into a session with isolation "thread" or "process".';
      return [{ level: "warning", code: "worker_stalled", message, hint, link }];
    }
    return [];
  });
}

const count = (n: number, what: string): string => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

const seconds = (ms: number): string =>
  ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
