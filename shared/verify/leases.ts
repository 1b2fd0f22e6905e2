/** I6, I14, I15, QUOTA-1: checks which worker holds which session, by the keys of the lease bucket. */
import { LeaseValue, type WorkerInfo } from "../../schemas/index.ts";
import { decode, leaseKeys } from "../bus/index.ts";
import { sleep } from "../runtime/index.ts";
import { type Installation, isGone } from "./installation.ts";
import type { LawId } from "./laws.ts";
import { endOf } from "./live/find-keys.ts";
import type { LiveBounds, LiveInstance } from "./live/instances.ts";
import type { Findings } from "./report.ts";

interface HeldLease {
  readonly sessionId: string;
  readonly attachment: number;
  readonly holder: string;
  readonly instanceId: string | undefined;
  readonly type: string | undefined;
}

interface Suspicion {
  law: LawId;
  instanceId: string | undefined;
  evidence: string;
}

/** Leases change while they are read: a violation is reported only if every look showed it. */
export async function checkLeases(
  installation: Installation,
  live: ReadonlyMap<string, LiveInstance>,
  bounds: LiveBounds,
  findings: Findings,
): Promise<void> {
  let suspicions: Map<string, Suspicion> | undefined;
  for (let look = 1; look <= bounds.looks; look++) {
    if (look > 1) await sleep(installation.clock, bounds.settleMs);
    const held = await heldLeases(installation, live);
    if (look === 1) findings.count("leases", held.length);
    const workers = await installation.workers();
    const now = new Map(
      [
        ...overlaps(held),
        ...overCaps(held, workers),
        ...overQuotas(held, workers),
        ...(await orphans(installation, held, live, bounds)),
      ].map((one) => [`${one.law} ${one.evidence}`, one]),
    );
    suspicions = suspicions ? new Map([...suspicions].filter(([key]) => now.has(key))) : now;
    if (suspicions.size === 0) return;
  }
  for (const { law, instanceId, evidence } of suspicions?.values() ?? [])
    findings.violation(law, instanceId, evidence);
}

async function heldLeases(
  installation: Installation,
  live: ReadonlyMap<string, LiveInstance>,
): Promise<HeldLease[]> {
  const held: HeldLease[] = [];
  for await (const { key, message } of installation.entries("leases", leaseKeys.allSessions)) {
    const address = leaseKeys.parseSession(key);
    if (!address || isGone(message)) continue;
    const value = decode(LeaseValue, message.body);
    if (value.kind === "invalid") continue; // unknown format
    const { holder, session } = value.value;
    const known =
      session && live.get(session.instanceId)?.sessions.find((one) => one.sessionId === address.sessionId);
    held.push({ ...address, holder, instanceId: session?.instanceId, type: known?.type });
  }
  return held;
}

/**
 * I6. A holder that comes back by itself had given up its earlier attachment, even if the server shows that
 * later (S14).
 */
export function overlaps(held: readonly HeldLease[]): Suspicion[] {
  const bySession = new Map<string, HeldLease>();
  const found: Suspicion[] = [];
  for (const lease of held) {
    const other = bySession.get(lease.sessionId);
    if (other && other.holder !== lease.holder)
      found.push({
        law: "I6",
        instanceId: lease.instanceId,
        evidence: `session ${lease.sessionId} is held by ${other.holder} (attachment ${other.attachment}) and by ${lease.holder} (attachment ${lease.attachment})`,
      });
    bySession.set(lease.sessionId, lease);
  }
  return found;
}

/** I14 */
function overCaps(held: readonly HeldLease[], workers: readonly WorkerInfo[]): Suspicion[] {
  const found: Suspicion[] = [];
  for (const { workerId, slots, perType } of workers) {
    const mine = sessionsOf(held.filter(({ holder }) => holder === workerId));
    if (mine.length > slots.sessions.max)
      found.push({
        law: "I14",
        instanceId: undefined,
        evidence: `${workerId} holds ${mine.length} sessions, its cap is ${slots.sessions.max}`,
      });
    for (const [type, { max }] of Object.entries(perType)) {
      const ofType = mine.filter((lease) => lease.type === type).length;
      if (ofType > max)
        found.push({
          law: "I14",
          instanceId: undefined,
          evidence: `${workerId} holds ${ofType} sessions of type ${type}, its cap is ${max}`,
        });
    }
  }
  return found;
}

/** QUOTA-1. While workers have different limits each applies its own: the largest one counts. */
function overQuotas(held: readonly HeldLease[], workers: readonly WorkerInfo[]): Suspicion[] {
  const all = sessionsOf(held);
  const limits = new Map<string, { max: number; used: number }>();
  const note = (whose: string, max: number, used: number) =>
    limits.set(whose, { max: Math.max(max, limits.get(whose)?.max ?? 0), used });
  for (const { quotas } of workers) {
    if (quotas?.all) note("of all types", quotas.all.max, all.length);
    for (const [type, { max }] of Object.entries(quotas?.types ?? {}))
      note(`of type ${type}`, max, all.filter((lease) => lease.type === type).length);
  }
  return [...limits]
    .filter(([, { max, used }]) => used > max)
    .map(([whose, { max, used }]) => ({
      law: "QUOTA-1",
      instanceId: undefined,
      evidence: `${used} sessions ${whose} are held, the quota is ${max}`,
    }));
}

/** One lease per session: of two attachments of one holder the earlier one is given up. */
const sessionsOf = (held: readonly HeldLease[]): HeldLease[] => [
  ...new Map(held.map((lease) => [`${lease.sessionId} ${lease.holder}`, lease])).values(),
];

/**
 * I15: leases held for a session that has ended. Sessions that were live when they were read wait for the next
 * look.
 */
async function orphans(
  installation: Installation,
  held: readonly HeldLease[],
  live: ReadonlyMap<string, LiveInstance>,
  bounds: LiveBounds,
): Promise<Suspicion[]> {
  const found: Suspicion[] = [];
  const now = await installation.now();
  for (const { sessionId, attachment, holder, instanceId } of held) {
    if (instanceId === undefined) continue;
    const known = live.get(instanceId)?.sessions.find((session) => session.sessionId === sessionId);
    if (known && known.phase !== "closed" && known.phase !== "failed") continue;
    const end = await endOf(installation, instanceId);
    const overdue = end === "absent" || (end !== "running" && now - end.endedAt > bounds.overdueMs);
    if (overdue)
      found.push({
        law: "I15",
        instanceId,
        evidence: `${holder} holds session ${sessionId} (attachment ${attachment}) of an instance that ${end === "absent" ? "is not there" : "has ended"}`,
      });
  }
  return found;
}
