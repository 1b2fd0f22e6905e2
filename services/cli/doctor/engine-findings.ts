/**
 * Findings about the engine: processes, waiting work, parked instances. Problems are worded by
 * shared/problems. Pure.
 */

import type { ServiceInfo } from "../../../schemas/index.ts";
import { unparking } from "../../../shared/errors/index.ts";
import { versionsText } from "../../../shared/fleet/index.ts";
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
import { resourceOfHost } from "../../../shared/sessions/index.ts";
import { count } from "../../../shared/wording/index.ts";
import { span } from "../terminal/text.ts";
import type { Finding, Observations } from "./observations.ts";

export const engineFindings = (seen: Observations): Finding[] => [
  orchestrators(seen),
  ...partitions(seen),
  watcher(seen),
  ...workers(seen),
  ...clocks(seen),
  ...versions(seen),
  ...quotas(seen),
  ...seen.queues.map((queue) => lag(queue, seen)),
  ...unservedActivities(viewOf(seen)).map((problem) =>
    finding({ code: problem.code, what: "activities" }, problem),
  ),
  ...unservedSessions(viewOf(seen)).map((problem) =>
    finding({ code: problem.code, what: `session type ${problem.sessionType}` }, problem),
  ),
  ...sharedResources(seen),
  histories(seen),
  parked(seen),
  deadLettersFound(seen),
];

const finding = (fact: Pick<Finding, "code" | "what">, { level, message, remedy }: Problem): Finding => ({
  ...fact,
  verdict: level === "error" ? "wrong" : "note",
  found: message,
  ...(remedy !== undefined && { todo: remedy }),
});

const viewOf = (seen: Observations): InstallationView => ({
  now: seen.now,
  services: seen.services.map(({ value }) => value),
  workers: seen.workers.map(({ value }) => value),
  fleet: seen.fleet,
  partitions: { wanted: seen.partitions.count, held: seen.partitions.held.length },
  live: 0,
  parked: seen.parked.length,
  deadLetters: seen.dead.letters,
  queues: seen.queues.map(({ name, messages, consumers }) => ({
    ...{ name, messages, readers: consumers.length },
    pending: consumers.reduce((sum, { pending }) => sum + pending, 0),
  })),
  tasks: seen.waitingActivities,
  sessions: seen.openSessions,
});

const alive = ({ services }: Observations, service: ServiceInfo["service"]): ServiceInfo[] =>
  services.map(({ value }) => value).filter((info) => info.service === service);

const names = (infos: readonly { host: string; pid: number }[]): string =>
  infos.map(({ host, pid }) => `${host}/${pid}`).join(", ");

function orchestrators(seen: Observations): Finding {
  const fact = { code: "orchestrators", what: "orchestrators" };
  const [problem] = missingOrchestrators(viewOf(seen));
  const infos = alive(seen, "orchestrator");
  return problem
    ? finding(fact, problem)
    : { ...fact, verdict: "good", found: `${infos.length}: ${names(infos)}` };
}

function partitions(seen: Observations): Finding[] {
  const { count: wanted, held } = seen.partitions;
  const fact = { code: "partitions", what: "partitions" };
  const [problem] = unheldPartitions(viewOf(seen));
  // Without an orchestrator, the missing orchestrator is the only finding.
  if (!problem)
    return held.length < wanted ? [] : [{ ...fact, verdict: "good", found: `all ${wanted} have an owner` }];
  const missing = Array.from({ length: wanted }, (_, n) => n).filter((n) => !held.includes(n));
  const some = `${missing.slice(0, 8).join(", ")}${missing.length > 8 ? ", …" : ""}`;
  return [{ ...finding(fact, problem), verdict: "wrong", found: `${problem.message} (${some})` }];
}

function watcher(seen: Observations): Finding {
  const fact = { code: "watcher", what: "watcher" };
  const infos = alive(seen, "watcher");
  const [problem] = missingWatchers(viewOf(seen));
  // A watcher that has just taken the lease announces it a moment later.
  if (problem && (infos.length === 0 || seen.watcherLease === "free"))
    return { ...finding(fact, problem), verdict: "wrong" };
  const acting = infos.filter((info) => info.acting === true);
  const standby = infos.length - Math.max(1, acting.length);
  return {
    ...fact,
    verdict: "good",
    found: `${names(acting.length > 0 ? acting : infos)} acts${standby > 0 ? `, ${standby} on standby` : ""}`,
  };
}

function workers(seen: Observations): Finding[] {
  const fact = { code: "workers", what: "workers" };
  const infos = seen.workers.map(({ value }) => value);
  if (infos.length === 0) {
    const found = "none alive: no activity runs and no session is held";
    return [{ ...fact, verdict: "wrong", found, todo: "run `holdfast worker --app <module>`" }];
  }
  const sessions = infos.reduce((sum, { slots }) => sum + slots.sessions.used, 0);
  const draining = infos.filter((worker) => worker.draining).length;
  const found = `${infos.length}, holding ${count(sessions, "session")}${draining > 0 ? `, ${draining} draining` : ""}`;
  return [
    { ...fact, verdict: "good", found },
    ...strugglingWorkers(viewOf(seen)).map((problem) =>
      finding({ code: problem.code, what: `worker ${problem.workerId}` }, problem),
    ),
  ];
}

/** A resource id must belong to one worker. Workers of 0.1.0 without one share the machine's id. */
function sharedResources({ workers }: Observations): Finding[] {
  const holders = new Map<string, { resourceId: string; host: string; ids: string[] }>();
  for (const { value } of workers) {
    const { workerId, resourceId, host } = value;
    if (resourceId === resourceOfHost(host)) continue;
    const key = `${host} ${resourceId}`;
    const ids = holders.get(key)?.ids ?? [];
    holders.set(key, { resourceId, host, ids: [...ids, workerId] });
  }
  return [...holders.values()]
    .filter(({ ids }) => ids.length > 1)
    .map(({ resourceId, host, ids }) => ({
      code: "resource_shared",
      what: `resource ${resourceId}`,
      verdict: "note",
      found: `${ids.length} workers on ${host} use this resource id: ${ids.join(", ")}`,
      todo: "give each its own WORKER_NODE_ID or WORKER_RESOURCE_ID, or a session that is created anew from a token may come to the other one",
    }));
}

const skewMs = 2_000;

/** Compares each process's own time of its entry with the server's time of that write. */
function clocks({ services, workers }: Observations): Finding[] {
  const all = [
    ...services.map(({ value, at }) => ({
      process: `${value.service} ${value.host}/${value.pid}`,
      off: value.seenAt - at,
    })),
    ...workers.map(({ value, at }) => ({ process: `worker ${value.workerId}`, off: value.seenAt - at })),
  ];
  const wrong = all.filter(({ off }) => Math.abs(off) > skewMs);
  if (wrong.length === 0) return [];
  return [
    {
      code: "clocks",
      what: "clocks",
      verdict: "wrong",
      found: wrong
        .map(
          ({ process, off }) =>
            `${process} is ${span(Math.abs(off))} ${off > 0 ? "ahead of" : "behind"} the server`,
        )
        .join(", "),
      todo: "run NTP on every machine; timers and deadlines are off by as much",
    },
  ];
}

function versions(seen: Observations): Finding[] {
  const { fleet } = seen;
  const several = Object.keys(fleet.versions).length > 1;
  const fact = { code: "generation", what: "generation" };
  const [problem] = heldBackGeneration(viewOf(seen));
  return [
    {
      code: "versions",
      what: "versions",
      verdict: several ? "note" : "good",
      found: versionsText(fleet) || "none alive",
      ...(several && { todo: "finish the upgrade" }),
    },
    problem
      ? finding(fact, problem)
      : { ...fact, verdict: "good", found: `${fleet.written} is written: every live process can read it` },
  ];
}

/** Each worker applies its own maximum: if they differ, the largest is effective. */
function quotas({ workers }: Observations): Finding[] {
  const limits = new Map<string, Set<number>>();
  const note = (scope: string, max: number | undefined) => {
    if (max === undefined) return;
    limits.set(scope, (limits.get(scope) ?? new Set()).add(max));
  };
  for (const { value } of workers) {
    note("all sessions", value.quotas?.all?.max);
    for (const [type, { max }] of Object.entries(value.quotas?.types ?? {})) note(`type ${type}`, max);
  }
  return [...limits]
    .filter(([, maxima]) => maxima.size > 1)
    .map(([scope, maxima]) => ({
      code: "quotas",
      what: `quota of ${scope}`,
      verdict: "wrong" as const,
      found: `workers disagree: ${[...maxima].sort((a, b) => a - b).join(" and ")}`,
      todo: "give all workers the same WORKER_MAX_TOTAL_SESSIONS and the same application",
    }));
}

function lag({ name, consumers }: Observations["queues"][number], seen: Observations): Finding {
  const pending = consumers.reduce((sum, consumer) => sum + consumer.pending, 0);
  const running = consumers.reduce((sum, consumer) => sum + consumer.ackPending, 0);
  const fact = { code: "queue", what: name };
  const problem = longQueues(viewOf(seen)).find(({ queue }) => queue === name);
  if (problem) return finding(fact, problem);
  const found = `${pending} waiting, ${running} being worked on, ${count(consumers.length, "consumer")}`;
  return { ...fact, verdict: "good", found };
}

function histories({ ownHistories, layout, maxOwnStreams }: Observations): Finding {
  const fact = { code: "histories", what: "histories" };
  if (layout === "shared")
    return { ...fact, verdict: "good", found: `shared streams, ${ownHistories} of their own` };
  const found = `${ownHistories} of at most ${maxOwnStreams} streams of their own`;
  if (ownHistories < maxOwnStreams) return { ...fact, verdict: "good", found };
  return {
    ...fact,
    verdict: "note",
    found,
    todo: "new instances go to the shared streams; shorter retention or HISTORY_MAX_STREAMS changes that",
  };
}

function parked(seen: Observations): Finding {
  const fact = { code: "parked", what: "parked instances" };
  const [first] = seen.parked;
  const [problem] = parkedInstances(viewOf(seen));
  if (!first || !problem) return { ...fact, verdict: "good", found: "none" };
  return {
    ...finding(fact, problem),
    found: `${problem.message}; among them ${first.instanceId}: ${first.message} (${first.code})`,
    todo: unparking(first.instanceId, first.code),
  };
}

function deadLettersFound(seen: Observations): Finding {
  const fact = { code: "dead_letters", what: "dead letters" };
  const { latest } = seen.dead;
  const [problem] = deadLetters(viewOf(seen));
  if (!problem) return { ...fact, verdict: "good", found: "none" };
  const found = `${problem.message}${latest ? `; the latest: ${latest.message} (${latest.code})` : ""}`;
  return { ...finding(fact, problem), found };
}
