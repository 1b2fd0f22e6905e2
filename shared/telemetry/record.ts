/**
 * Turns announced happenings into metrics. Every kind is listed: a new kind does not compile until it has an
 * entry here.
 */
import type { Happening } from "../runtime/index.ts";
import type { Instruments } from "./instruments.ts";

type Kind = Happening["kind"];
type Of<K extends Kind> = Extract<Happening, { kind: K }>;
/** `null`: not counted; the logs have it. */
type Recorders = { [K in Kind]: ((happening: Of<K>) => void) | null };

export function recorder(metrics: Instruments): (happening: Happening) => void {
  const recorders = recordersOf(metrics);
  return (happening) => {
    const record = recorders[happening.kind] as ((happening: Happening) => void) | null | undefined;
    record?.(happening);
  };
}

function recordersOf(metrics: Instruments): Recorders {
  const orchestration = bounded();
  const activity = bounded();
  const type = bounded();
  const call = bounded();
  return {
    "bus.connected": () => metrics.busConnected.set(1),
    "bus.disconnected": () => {
      metrics.busAway.inc();
      metrics.busConnected.set(0);
    },
    "bus.reconnected": ({ awayMs }) => {
      metrics.busAwaySeconds.inc(awayMs / 1000);
      metrics.busConnected.set(1);
    },
    "generation.written": ({ generation }) => metrics.generation.set(generation),
    "dead.lettered": ({ what, code }) => metrics.dead.inc({ what, code }),
    "partition.gained": () => metrics.partitions.inc(),
    "partition.lost": ({ why }) => {
      metrics.partitions.dec();
      metrics.partitionsLost.inc({ why });
    },
    "instance.started": ({ name }) => metrics.started.inc({ name: orchestration(name) }),
    "instance.closed": ({ name, status, durationMs }) => {
      const labels = { name: orchestration(name), status };
      metrics.closed.inc(labels);
      metrics.duration.observe(labels, durationMs / 1000);
    },
    "instance.loaded": ({ events }) => metrics.replayed.inc(events),
    "instance.parked": ({ code }) => {
      metrics.parked.inc({ code });
      if (code === "nondeterminism") metrics.nondeterminism.inc();
    },
    "instance.resumed": null,
    "turn.committed": ({ turnMs, appendMs }) => {
      metrics.turn.observe(turnMs / 1000);
      metrics.append.observe(appendMs / 1000);
    },
    "turn.fenced": () => metrics.conflicts.inc(),
    "commit.owed": null,
    "append.ambiguous": ({ landed }) => metrics.ambiguous.inc({ landed: String(landed) }),
    "message.duplicate": ({ verb }) => metrics.duplicates.inc({ verb }),
    "capability.refused": ({ what, why }) => metrics.incapable.inc({ what, why }),
    "capability.missing": () => metrics.unproved.inc(),
    "completion.late": () => metrics.late.inc(),
    "completion.fenced": () => metrics.fenced.inc(),
    "lane.recalled": ({ why }) => metrics.laneRecalled.inc({ why }),
    "worker.died": null,
    "orchestrator.died": null,
    "lane.adopted": null,
    "signal.unheard": null,
    "history.long": null,
    "history.shared": null,
    "history.archived": null,
    "orchestration.log": null,
    "worker.ready": null,
    "worker.draining": null,
    "activity.started": ({ name, redelivered, waitedMs }) => {
      metrics.scheduleToStart.observe({ name: activity(name) }, Math.max(0, waitedMs) / 1000);
      if (redelivered) metrics.redeliveries.inc({ name: activity(name) });
    },
    "activity.ended": ({ name, outcome, ms }) =>
      metrics.execution.observe({ name: activity(name), outcome }, ms / 1000),
    "activity.handed_back": ({ why }) => metrics.handedBack.inc({ why }),
    "work.log": null,
    "activity.expired": ({ name, timeout }) => metrics.expired.inc({ name: activity(name), timeout }),
    "activity.silent": null,
    "activity.poisoned": ({ name }) => metrics.poisoned.inc({ name: activity(name) }),
    "claim.seen": ({ type: of, verdict }) => metrics.claims.inc({ type: type(of), verdict }),
    "session.attached": ({ type: of, initMs, warm, restored }) => {
      const start = warm ? "warm" : restored ? "restored" : "cold";
      metrics.sessionsActive.inc({ type: type(of) });
      metrics.attached.inc({ type: type(of), start });
      metrics.init.observe({ type: type(of) }, initMs / 1000);
    },
    "session.init_failed": ({ type: of }) => metrics.initFailed.inc({ type: type(of) }),
    "session.detached": ({ type: of, why }) => {
      metrics.sessionsActive.dec({ type: type(of) });
      metrics.detached.inc({ type: type(of), why });
    },
    "call.started": ({ type: of, waitedMs }) =>
      metrics.callWait.observe({ type: type(of) }, Math.max(0, waitedMs) / 1000),
    "call.ended": ({ type: of, name, outcome, ms }) =>
      metrics.call.observe({ type: type(of), name: call(name), outcome }, ms / 1000),
    "batch.ran": ({ type: of, name, size, ms }) => {
      const labels = { type: type(of), name: call(name) };
      metrics.batchSize.observe(labels, size);
      metrics.inference.observe(labels, ms / 1000);
    },
    "host.started": null,
    "host.ended": null,
    "host.log": null,
    "host.refused": null,
    "model.loaded": ({ model, device, loadMs, bytes }) => {
      metrics.modelLoad.observe({ model, device }, loadMs / 1000);
      if (bytes !== undefined) metrics.modelBytes.set({ model, device }, bytes);
    },
    "lease.granted": null,
    "lease.renewed": ({ ms }) => metrics.leaseRenewal.observe(ms / 1000),
    "lease.lost": ({ why }) => metrics.leasesLost.inc({ why }),
    "watcher.acting": () => metrics.acting.set(1),
    "watcher.standby": () => metrics.acting.set(0),
    "watcher.grace": null,
    "session.lost": ({ reason, lateMs }) => {
      metrics.lost.inc({ reason });
      if (lateMs !== undefined) metrics.lossDetection.observe(Math.max(0, lateMs) / 1000);
    },
    "retention.swept": null,
    "work.purged": null,
    fault: ({ where, code }) => metrics.faults.inc({ where, code }),
  };
}

const mostValues = 200;

/**
 * Names come from users' code, and names of starts from any client: beyond this many, further values share
 * one label.
 */
export function bounded(most = mostValues): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= most) return "other";
    known.add(value);
    return value;
  };
}
