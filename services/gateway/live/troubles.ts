/** The problems of the installation (shared/problems) for the dashboard, each with a link. Pure. */

import { z } from "zod";
import type { ServiceInfo, WorkerInfo } from "../../../schemas/index.ts";
import type { FleetView } from "../../../shared/fleet/index.ts";
import {
  deadLetters,
  heldBackGeneration,
  type InstallationView,
  longQueues,
  missingOrchestrators,
  missingWatchers,
  type Problem,
  parkedInstances,
  strugglingWorkers,
  unheldPartitions,
  unservedActivities,
  unservedSessions,
} from "../../../shared/problems/index.ts";
import { count, span } from "../../../shared/wording/index.ts";
import type { Counts } from "./instance-index.ts";
import type { SessionRow } from "./rows.ts";
import type { StreamsView } from "./stream-watch.ts";

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
  counts: Counts;
  /** Counts of the engine's own instances. */
  engineCounts: Counts;
  sessions: readonly SessionRow[];
  workers: readonly WorkerInfo[];
  services: readonly ServiceInfo[];
  streams: StreamsView | undefined;
  fleet: FleetView;
  partitions: { wanted: number; held: number };
  lostPerMinute: number;
  failedPerMinute: number;
}

/** Errors first. While NATS is unreachable nothing else is reported: the data may be old. */
export function findTroubles(input: TroubleInput): Trouble[] {
  const away = busAway(input);
  if (away.length > 0) return away;
  const view = viewOf(input);
  const found: Trouble[] = [
    ...[missingOrchestrators, missingWatchers, unheldPartitions, heldBackGeneration].flatMap((check) =>
      check(view).map((problem) => trouble(problem)),
    ),
    ...unservedSessions(view).map((problem) =>
      trouble(problem, `/sessions?type=${encodeURIComponent(problem.sessionType ?? "")}&phase=opening`),
    ),
    ...tasksNobodyTakes(view),
    ...parkedInstances(view).map((problem) => trouble(problem, parkedLink(input))),
    ...sessionsLost(input),
    ...deadLetters(view).map((problem) => trouble(problem, "/queues")),
    ...longQueues(view).map((problem) => trouble(problem, "/queues")),
    ...strugglingWorkers(view).map((problem) => trouble(problem, `/workers/${problem.workerId}`)),
  ];
  return [...found.filter(isError), ...found.filter((one) => !isError(one))];
}

const parkedLink = ({ counts }: TroubleInput): string =>
  `/orchestrations?status=parked${counts.parked === 0 ? "&engine=true" : ""}`;

const isError = ({ level }: Trouble): boolean => level === "error";

const trouble = ({ level, code, message, remedy }: Problem, link?: string): Trouble => ({
  ...{ level, code, message },
  ...(remedy !== undefined && { hint: remedy }),
  ...(link !== undefined && { link }),
});

function viewOf(input: TroubleInput): InstallationView {
  const { now, services, workers, fleet, partitions, counts, engineCounts, sessions } = input;
  const streams = input.streams?.streams ?? [];
  const activities = streams.find(({ name }) => name.endsWith("ACTIVITIES"))?.consumers ?? [];
  return {
    ...{ now, services, workers, fleet, partitions },
    live: counts.running + counts.pending + engineCounts.running + engineCounts.pending,
    parked: counts.parked + engineCounts.parked,
    deadLetters: streams.find(({ role }) => role === "dead")?.messages ?? 0,
    queues: streams
      .filter(({ role }) => role === "queue")
      .map(({ name, messages, consumers }) => ({
        ...{ name, messages, readers: consumers.length },
        pending: consumers.reduce((sum, { pending }) => sum + pending, 0),
      })),
    tasks: activities.map(({ filter, pending }) => {
      const [queue = "", name = ""] = filter.split(".").slice(-2);
      return { queue, name, tasks: pending };
    }),
    sessions: sessions.filter(({ phase }) => phase === "opening"),
  };
}

function busAway({ bus, now }: TroubleInput): Trouble[] {
  if (bus.connected) return [];
  const since = bus.awaySince === undefined ? "" : ` for ${span(now - bus.awaySince)}`;
  return [
    {
      level: "error",
      code: "bus_away",
      message: `NATS has been away${since}: what you see is what was known before`,
      hint: "Check that nats-server runs and that NATS_URL points at it.",
    },
  ];
}

/** Without any worker, one problem covers all activities. */
function tasksNobodyTakes(view: InstallationView): Trouble[] {
  const waiting = view.queues.find(({ name }) => name.endsWith("ACTIVITIES"))?.messages ?? 0;
  if (waiting > 0 && view.workers.length === 0) {
    const message = `No worker is running: ${count(waiting, "task")} ${waiting === 1 ? "waits" : "wait"}`;
    return [
      {
        level: "error",
        code: "no_worker",
        message,
        hint: "Start one: `holdfast worker --app <module>`",
        link: "/queues",
      },
    ];
  }
  return unservedActivities(view).map((problem) => trouble(problem, "/queues"));
}

function sessionsLost({ lostPerMinute }: TroubleInput): Trouble[] {
  if (lostPerMinute === 0) return [];
  const message = `${count(lostPerMinute, "session")} lost in the last minute`;
  const hint = "Their workers ended or could not renew the lease; each session's page says which, and why.";
  return [{ level: "warning", code: "sessions_lost", message, hint, link: "/sessions" }];
}
