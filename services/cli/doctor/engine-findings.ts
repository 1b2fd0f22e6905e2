/** The engine: who is alive, who waits for whom, what was set aside. Pure. */
import type { ServiceInfo } from "../../../schemas/index.ts";

import { unparking } from "../../../shared/errors/index.ts";
import { heldBackText, versionsText } from "../../../shared/fleet/index.ts";

import { type NoPlace, placeWithinQuotas } from "../../../shared/sessions/index.ts";
import { count, span } from "../terminal/text.ts";
import type { Finding, Seen } from "./seen.ts";

export const engineFindings = (seen: Seen): Finding[] => [
  orchestrators(seen),
  ...partitions(seen),
  watcher(seen),
  workers(seen),
  ...clocks(seen),
  ...versions(seen),
  ...quotas(seen),
  ...seen.queues.map((queue) => lag(queue)),
  ...unservedActivities(seen),
  ...unservedSessions(seen),
  histories(seen),
  parked(seen),
  deadLetters(seen),
];

const alive = ({ services }: Seen, service: ServiceInfo["service"]): ServiceInfo[] =>
  services.map(({ value }) => value).filter((info) => info.service === service);

const names = (infos: readonly { host: string; pid: number }[]): string =>
  infos.map(({ host, pid }) => `${host}/${pid}`).join(", ");

function orchestrators(seen: Seen): Finding {
  const fact = { code: "orchestrators", what: "orchestrators" };
  const infos = alive(seen, "orchestrator");
  if (infos.length > 0) return { ...fact, verdict: "good", found: `${infos.length}: ${names(infos)}` };
  return {
    ...fact,
    verdict: "wrong",
    found: "none alive: no instance makes progress",
    todo: "run `holdfast orchestrator --app <module>`",
  };
}

function partitions(seen: Seen): Finding[] {
  const { count: wanted, held } = seen.partitions;
  const fact = { code: "partitions", what: "partitions" };
  if (held.length >= wanted) return [{ ...fact, verdict: "good", found: `all ${wanted} have an owner` }];
  const missing = Array.from({ length: wanted }, (_, n) => n).filter((n) => !held.includes(n));
  const some = `${missing.slice(0, 8).join(", ")}${missing.length > 8 ? ", …" : ""}`;
  return [
    {
      ...fact,
      verdict: "wrong",
      found: `${missing.length} of ${wanted} have no owner (${some}): their instances wait`,
      todo:
        alive(seen, "orchestrator").length === 0
          ? "start an orchestrator"
          : "they move within one lease time; if this stays, look at the orchestrators' logs",
    },
  ];
}

function watcher(seen: Seen): Finding {
  const fact = { code: "watcher", what: "watcher" };
  const infos = alive(seen, "watcher");
  if (infos.length === 0) {
    return {
      ...fact,
      verdict: "wrong",
      found: "none alive: nobody notices that a session was lost",
      todo: "run `holdfast watcher`",
    };
  }
  const acting = infos.filter((info) => info.acting === true);
  if (acting.length === 0 && seen.watcherLease === "free") {
    return {
      ...fact,
      verdict: "wrong",
      found: `${names(infos)}, but none has taken the lead`,
      todo: "it should within one lease time; if this stays, look at its log",
    };
  }
  const standby = infos.length - Math.max(1, acting.length);
  return {
    ...fact,
    verdict: "good",
    found: `${names(acting.length > 0 ? acting : infos)} acts${standby > 0 ? `, ${standby} on standby` : ""}`,
  };
}

const stalledMs = 500;

function workers({ workers }: Seen): Finding {
  const fact = { code: "workers", what: "workers" };
  if (workers.length === 0) {
    return {
      ...fact,
      verdict: "wrong",
      found: "none alive: no activity runs and no session is held",
      todo: "run `holdfast worker --app <module>`",
    };
  }
  const infos = workers.map(({ value }) => value);
  const sessions = infos.reduce((sum, { slots }) => sum + slots.sessions.used, 0);
  const draining = infos.filter((worker) => worker.draining).length;
  const late = infos.filter((worker) => worker.eventLoopDelayMs > stalledMs);
  const found = `${infos.length}, holding ${count(sessions, "session")}${draining > 0 ? `, ${draining} draining` : ""}`;
  if (late.length === 0) return { ...fact, verdict: "good", found };
  return {
    ...fact,
    verdict: "note",
    found: `${found}; held up: ${late.map((worker) => worker.workerId).join(", ")}`,
    todo: 'heavy code belongs into a session with isolation "thread" or "process"',
  };
}

const skewMs = 2_000;

/** Each says when it thinks it wrote; the server says when it got it. */
function clocks({ services, workers }: Seen): Finding[] {
  const all = [
    ...services.map(({ value, at }) => ({
      who: `${value.service} ${value.host}/${value.pid}`,
      off: value.seenAt - at,
    })),
    ...workers.map(({ value, at }) => ({ who: `worker ${value.workerId}`, off: value.seenAt - at })),
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
          ({ who, off }) => `${who} is ${span(Math.abs(off))} ${off > 0 ? "ahead of" : "behind"} the server`,
        )
        .join(", "),
      todo: "run NTP on every machine; timers and deadlines are off by as much",
    },
  ];
}

function versions({ fleet }: Seen): Finding[] {
  const { versions, written, newest, heldBackBy } = fleet;
  const several = Object.keys(versions).length > 1;
  return [
    {
      code: "versions",
      what: "versions",
      verdict: several ? "note" : "good",
      found: versionsText(fleet) || "none alive",
      ...(several && { todo: "finish the upgrade" }),
    },
    heldBackBy.length === 0
      ? {
          code: "generation",
          what: "generation",
          verdict: "good",
          found: `${written} is written: everybody alive can read it`,
        }
      : {
          code: "generation",
          what: "generation",
          verdict: "note",
          found: `${written} is written instead of ${newest}, held back by ${heldBackText(fleet)}`,
          todo: "finish the upgrade, and take HOLDFAST_GENERATION away where it is set",
        },
  ];
}

/** Each worker goes by its own number: with several, the largest is what holds. */
function quotas({ workers }: Seen): Finding[] {
  const limits = new Map<string, Set<number>>();
  const note = (whose: string, max: number | undefined) => {
    if (max === undefined) return;
    limits.set(whose, (limits.get(whose) ?? new Set()).add(max));
  };
  for (const { value } of workers) {
    note("all sessions", value.quotas?.all?.max);
    for (const [type, { max }] of Object.entries(value.quotas?.types ?? {})) note(`type ${type}`, max);
  }
  return [...limits]
    .filter(([, maxima]) => maxima.size > 1)
    .map(([whose, maxima]) => ({
      code: "quotas",
      what: `quota of ${whose}`,
      verdict: "wrong" as const,
      found: `workers disagree: ${[...maxima].sort((a, b) => a - b).join(" and ")}`,
      todo: "give all workers the same WORKER_MAX_TOTAL_SESSIONS and the same application",
    }));
}

const longQueue = 10_000;

function lag({ name, messages, consumers }: Seen["queues"][number]): Finding {
  const pending = consumers.reduce((sum, consumer) => sum + consumer.pending, 0);
  const running = consumers.reduce((sum, consumer) => sum + consumer.ackPending, 0);
  const fact = {
    code: "queue",
    what: name,
    found: `${pending} waiting, ${running} being worked on, ${count(consumers.length, "consumer")}`,
  };
  if (consumers.length === 0 && messages > 0) {
    return {
      ...fact,
      verdict: "wrong",
      found: `${count(messages, "message")} and nobody who reads them`,
      todo: "is the service that reads it running?",
    };
  }
  if (pending <= longQueue) return { ...fact, verdict: "good" };
  return { ...fact, verdict: "wrong", todo: "more of the service that reads it, or more slots, shorten it" };
}

function unservedActivities({ waitingActivities, workers, now }: Seen): Finding[] {
  const served = new Set(
    workers.flatMap(({ value }) => value.activities.map(({ queue, name }) => `${queue} ${name}`)),
  );
  return waitingActivities
    .filter(({ queue, name }) => !served.has(`${queue} ${name}`))
    .map(({ queue, name, tasks, oldestAt }) => ({
      code: "activity_unserved",
      what: `activity ${queue}/${name}`,
      verdict: "wrong" as const,
      found: `${count(tasks, "task")} and no worker that runs it, the oldest for ${span(Math.max(0, now - oldestAt))}`,
      todo: "start a worker whose application has this activity on this queue",
    }));
}

/** A worker is asked and answers within this long when there is one. */
const waitingLongMs = 3_000;

interface Stuck {
  type: string;
  message: string;
  why: NoPlace;
  sessions: number;
  since: number;
}

function unservedSessions({ openSessions, workers, now }: Seen): Finding[] {
  const infos = workers.map(({ value }) => value);
  const stuck = new Map<string, Stuck>();
  for (const { sessionId, type, requires, resourceId, updatedAt } of openSessions) {
    if (now - updatedAt < waitingLongMs) continue;
    const placement = placeWithinQuotas(infos, {
      ...{ sessionId, type, requires, buildId: undefined, affinityKey: "" },
      resourceId,
    });
    if (placement.kind !== "none") continue;
    const key = `${type} ${placement.message}`;
    const { message, why } = placement;
    const group = stuck.get(key) ?? { type, message, why, sessions: 0, since: updatedAt };
    stuck.set(key, { ...group, sessions: group.sessions + 1, since: Math.min(group.since, updatedAt) });
  }
  return [...stuck.values()].map(({ type, message, why, sessions, since }) => ({
    code: "session_unserved",
    what: `session type ${type}`,
    // A quota that is reached does what it is there for.
    verdict: why === "at_quota" ? ("note" as const) : ("wrong" as const),
    found: `${count(sessions, "session")} ${sessions === 1 ? "waits" : "wait"}, the oldest for ${span(now - since)}: ${message}`,
    todo:
      why === "at_quota"
        ? "wait until others end, close or park them sooner, or raise the quota"
        : "start a worker that serves the type with these tags and resources",
  }));
}

function histories({ ownHistories, layout, maxOwnStreams }: Seen): Finding {
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

function parked({ parked }: Seen): Finding {
  const fact = { code: "parked", what: "parked instances" };
  const [first] = parked;
  if (!first) return { ...fact, verdict: "good", found: "none" };
  return {
    ...fact,
    verdict: "wrong",
    found: `${parked.length}, among them ${first.instanceId}: ${first.message} (${first.code})`,
    todo: unparking(first.instanceId, first.code),
  };
}

function deadLetters({ dead: { letters, latest } }: Seen): Finding {
  const fact = { code: "dead_letters", what: "dead letters" };
  if (letters === 0) return { ...fact, verdict: "good", found: "none" };
  return {
    ...fact,
    verdict: "note",
    found: `${letters}${latest ? `; the latest: ${latest.message} (${latest.code})` : ""}`,
    todo: "`holdfast dead list`, then retry or discard each",
  };
}
