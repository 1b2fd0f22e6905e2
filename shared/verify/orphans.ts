/**
 * I15: keys, consumers, streams and messages left over from what has ended. The watcher cleans up in its own
 * time, so the checker waits for it.
 */

import { beatKeys } from "../leases/index.ts";
import { sleep } from "../runtime/index.ts";
import { type Installation, isGone } from "./installation.ts";
import { endOf } from "./live/find-keys.ts";
import type { Findings } from "./report.ts";

/** How many instance lookups are remembered: leftovers often belong to the same instance. */
const remembered = 10_000;

interface OrphanBounds {
  /** How long leftovers may still wait to be cleaned up. */
  readonly orphanMs: number;
  readonly looks: number;
}

export async function checkOrphans(
  installation: Installation,
  { orphanMs, looks }: OrphanBounds,
  findings: Findings,
): Promise<void> {
  let left: Map<string, string | undefined> | undefined;
  for (let look = 1; look <= looks; look++) {
    if (look > 1) await sleep(installation.clock, orphanMs / Math.max(1, looks - 1));
    const now = await leftOver(installation, orphanMs);
    left = left ? new Map([...left].filter(([what]) => now.has(what))) : now;
    if (left.size === 0) return;
  }
  for (const [what, instanceId] of left ?? []) findings.violation("I15", instanceId, what);
}

/** The leftovers, and the instance each belongs to. */
async function leftOver(
  installation: Installation,
  orphanMs: number,
): Promise<Map<string, string | undefined>> {
  const found = new Map<string, string | undefined>();
  const now = await installation.now();
  const known = new Map<string, boolean>();
  const isOver = async (instanceId: string): Promise<boolean> => {
    const before = known.get(instanceId);
    if (before !== undefined) return before;
    const end = await endOf(installation, instanceId);
    const over = end === "absent" || (end !== "running" && now - end.endedAt > orphanMs);
    if (known.size < remembered) known.set(instanceId, over);
    return over;
  };
  await beats(installation, isOver, found);
  await entries(installation, isOver, found);
  await workers(installation, found);
  await ownStreams(installation, found);
  return found;
}

type Over = (instanceId: string) => Promise<boolean>;
type Left = Map<string, string | undefined>;

async function beats(installation: Installation, isOver: Over, left: Left): Promise<void> {
  for await (const { key, message } of installation.entries("leases", beatKeys.all)) {
    const beat = isGone(message) ? undefined : beatKeys.parse(key);
    if (beat && (await isOver(beat.instanceId)))
      left.set(
        `the heartbeat of event ${beat.of}, attempt ${beat.attempt}, of an instance that is over`,
        beat.instanceId,
      );
  }
}

/** Summaries without a history, and entries of sessions without an instance. */
async function entries(installation: Installation, isOver: Over, left: Left): Promise<void> {
  for await (const { key, message } of installation.entries("instances")) {
    if (isGone(message)) continue;
    if ((await endOf(installation, key)) === "absent") left.set("its summary is there, but no history", key);
  }
  for await (const { key, message } of installation.entries("sessions")) {
    if (isGone(message)) continue;
    const record = await installation.session(key);
    if (record.kind !== "entry") continue;
    const { instanceId, phase } = record.value;
    const open = phase !== "closed" && phase !== "failed" && phase !== "lost";
    if (open && (await isOver(instanceId)))
      left.set(`session ${key} is ${phase} in the register`, instanceId);
  }
}

/**
 * Consumers of, and work for, worker incarnations that are no longer registered: they never come back (S3).
 */
async function workers(installation: Installation, left: Left): Promise<void> {
  const { bus, names } = installation;
  const alive = new Set((await installation.workers()).map(({ workerId }) => workerId as string));
  for (const { name } of await bus.consumers(names.sessionsStream)) {
    const workerId = names.parseWorkerConsumer(name);
    if (workerId !== undefined && !alive.has(workerId))
      left.set(`consumer ${name} of a worker that is gone`, undefined);
  }
  for await (const { subject } of installation.messages(names.sessionsStream, names.allSessionWork)) {
    const address = names.parseSessionWork(subject);
    if (address && !alive.has(address.workerId))
      left.set(`work for session ${address.sessionId} on ${address.workerId}, which is gone`, undefined);
  }
}

/**
 * Streams made for a history that was then placed elsewhere (HISTORY-3), or that could not be moved there and
 * ended where it was (HISTORY-5). While the instance runs, its next move uses the stream.
 */
async function ownStreams(installation: Installation, left: Left): Promise<void> {
  const { bus, names } = installation;
  for (const stream of await bus.streamNames(names.ownHistories)) {
    const instanceId = names.parseOwnHistoryStream(stream);
    if (instanceId === undefined) continue;
    const last = await bus.last(stream, names.ownHistory(instanceId));
    if (last !== undefined || (await bus.streamInfo(stream)) === undefined) continue;
    if ((await endOf(installation, instanceId)) !== "running")
      left.set(`stream ${stream} is empty`, instanceId);
  }
}
