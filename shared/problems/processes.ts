/** Problems of processes: missing or struggling orchestrators, watchers and workers, and their versions. */

import { heldBackText, versionsText } from "../fleet/index.ts";
import { count, span } from "../wording/index.ts";
import type { InstallationView, Problem } from "./problem.ts";

const silentMs = 20_000;
const stalledMs = 500;

export function missingOrchestrators({ services, queues, live }: InstallationView): Problem[] {
  if (services.some(({ service }) => service === "orchestrator")) return [];
  const inbox = queues.find(({ name }) => name.endsWith("INBOX"))?.messages ?? 0;
  const stake =
    inbox > 0 ? `${count(inbox, "message")} in the inbox` : `${count(live, "instance")} stand still`;
  return [
    {
      level: "error",
      code: "no_orchestrator",
      message: `No orchestrator is running${inbox + live > 0 ? `: ${stake}` : ""}`,
      remedy: "Start one: `holdfast orchestrator --app <module>`",
    },
  ];
}

export function missingWatchers({ services }: InstallationView): Problem[] {
  const watchers = services.filter(({ service }) => service === "watcher");
  if (watchers.length === 0) {
    return [
      {
        level: "error",
        code: "no_watcher",
        message: "No watcher is running: sessions of workers that die are not reported lost",
        remedy: "Start one: `holdfast watcher`",
      },
    ];
  }
  if (watchers.some(({ acting }) => acting !== false)) return [];
  return [
    {
      level: "warning",
      code: "no_acting_watcher",
      message: "No watcher has taken the lead yet",
      remedy: "One should within one lease time. If it stays, look at the watchers' logs.",
    },
  ];
}

export function unheldPartitions({ partitions, services }: InstallationView): Problem[] {
  const missing = partitions.wanted - partitions.held;
  if (missing <= 0 || !services.some(({ service }) => service === "orchestrator")) return [];
  return [
    {
      level: "warning",
      code: "partitions_unheld",
      message: `${missing} of ${partitions.wanted} partitions have no owner: their instances wait`,
      remedy: "They move within one lease time. If it stays, look at the orchestrators' logs.",
    },
  ];
}

export const strugglingWorkers = ({ workers, now }: InstallationView): (Problem & { workerId: string })[] =>
  workers.flatMap(({ workerId, seenAt, eventLoopDelayMs }) => {
    if (now - seenAt > silentMs) {
      const message = `Worker ${workerId} last renewed its entry ${span(now - seenAt)} ago`;
      return [{ level: "warning", code: "worker_silent", message, workerId }];
    }
    if (eventLoopDelayMs > stalledMs) {
      const message = `Worker ${workerId} is blocked: its event loop is ${Math.round(eventLoopDelayMs)} ms late`;
      const remedy = 'Heavy code belongs into a session with isolation "thread" or "process".';
      return [{ level: "warning", code: "worker_stalled", message, remedy, workerId }];
    }
    return [];
  });

export function heldBackGeneration({ fleet }: InstallationView): Problem[] {
  if (fleet.heldBackBy.length === 0) return [];
  return [
    {
      level: "warning",
      code: "generation_held_back",
      message: `Generation ${fleet.written} is written instead of ${fleet.newest}, held back by ${heldBackText(fleet)}. Versions: ${versionsText(fleet)}.`,
      remedy: "Finish the upgrade, and remove HOLDFAST_GENERATION where it is set.",
    },
  ];
}
