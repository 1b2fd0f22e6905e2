/** Problems of waiting work: no worker serves it, its queue is long, or an operator has to decide. */

import { placeWithinQuotas } from "../sessions/index.ts";
import { count, span, waits } from "../wording/index.ts";
import type { InstallationView, Problem, WaitingSession } from "./problem.ts";

/** A worker that can take a session takes it within this long. */
const waitingLongMs = 3_000;
const longQueue = 1_000;

export function unservedSessions({ sessions, workers, now }: InstallationView): Problem[] {
  const stuck = new Map<
    string,
    {
      type: string;
      message: string;
      requires: WaitingSession["requires"];
      atQuota: boolean;
      n: number;
      since: number;
    }
  >();
  for (const { sessionId, type, requires, resourceId, updatedAt } of sessions) {
    if (now - updatedAt < waitingLongMs) continue;
    const claim = {
      sessionId,
      type,
      requires,
      affinityKey: "",
      ...(resourceId !== undefined && { resourceId }),
    };
    const placement = placeWithinQuotas(workers, claim);
    if (placement.kind === "chosen") continue;
    const { message, why } = placement;
    const key = `${type} ${message}`;
    const atQuota = why === "at_quota";
    const group = stuck.get(key) ?? { type, message, requires, atQuota, n: 0, since: updatedAt };
    stuck.set(key, { ...group, n: group.n + 1, since: Math.min(group.since, updatedAt) });
  }
  return [...stuck.values()].map(({ type, message, requires, atQuota, n, since }) => ({
    // A reached quota works as intended.
    level: atQuota ? "warning" : "error",
    code: "session_unserved",
    sessionType: type,
    message: `${count(n, "session")} of type ${type} ${waits(n)}, the oldest for ${span(now - since)}: ${message}`,
    remedy: atQuota
      ? "They go on as others end. Close or park those sooner, or raise the quota."
      : remedyFor(requires),
  }));
}

/** The command that starts a worker such a session could go to. */
function remedyFor({ tags, resources }: WaitingSession["requires"]): string {
  const needs = Object.entries(resources).map(([name, amount]) => `${name}=${amount}`);
  const settings = [
    ...(tags.length > 0 ? [`WORKER_TAGS=${tags.join(",")}`] : []),
    ...(needs.length > 0 ? [`WORKER_RESOURCES=${needs.join(",")}`] : []),
  ];
  return `Start a worker that can take it: \`${[...settings, "holdfast worker --app <module>"].join(" ")}\``;
}

export function unservedActivities({ tasks, workers, now }: InstallationView): Problem[] {
  const served = new Set(
    workers.flatMap(({ activities }) => activities.map(({ queue, name }) => `${queue} ${name}`)),
  );
  return tasks
    .filter((waiting) => waiting.tasks > 0 && !served.has(`${waiting.queue} ${waiting.name}`))
    .map(({ queue, name, tasks: n, oldestAt }) => ({
      level: "error",
      code: "activity_unserved",
      message: `No worker runs activity ${queue} / ${name}: ${count(n, "task")} ${waits(n)}${oldestAt === undefined ? "" : `, the oldest for ${span(Math.max(0, now - oldestAt))}`}`,
      remedy:
        "Start a worker whose application has this activity on this queue, with the tags it requires: `holdfast worker --app <module>`",
    }));
}

export const longQueues = ({ queues }: InstallationView): (Problem & { queue: string })[] =>
  queues.flatMap(({ name, messages, pending, readers }): (Problem & { queue: string })[] => {
    if (readers === 0 && messages > 0) {
      const message = `${count(messages, "message")} in ${name}, and no service reads them`;
      const remedy = "Start the service that reads it.";
      return [{ level: "error", code: "queue_unread", message, remedy, queue: name }];
    }
    if (pending <= longQueue) return [];
    const message = `${pending.toLocaleString("en")} messages wait in ${name}`;
    const remedy = "More of the service that reads it, or more slots, shorten it.";
    return [{ level: "warning", code: "queue_long", message, remedy, queue: name }];
  });

export function parkedInstances({ parked }: InstallationView): Problem[] {
  if (parked === 0) return [];
  return [
    {
      level: "error",
      code: "instances_parked",
      message: `${count(parked, "instance")} parked: code and history disagree, or a turn could not finish`,
      remedy: "Each says why. A fixed deployment resumes them.",
    },
  ];
}

export function deadLetters({ deadLetters }: InstallationView): Problem[] {
  if (deadLetters === 0) return [];
  return [
    {
      level: "warning",
      code: "dead_letters",
      message: `${count(deadLetters, "dead letter")} ${waits(deadLetters)} for a decision`,
      remedy: "`holdfast dead list`, then retry or discard each.",
    },
  ];
}
