/**
 * I8, I9, I16: everything open is in the hands of some process. Everything moves while it is read, so an
 * instance is reported only if several looks found it unchanged and what it waits for missing.
 */
import { sleep } from "../../runtime/index.ts";
import type { Folded } from "../fold.ts";
import type { Installation } from "../installation.ts";
import type { Findings } from "../report.ts";
import { type Found, foundAmong } from "./find-keys.ts";
import { keys, type Need, needsOf } from "./waiting-for.ts";

/** A session of a live instance, according to its history. */
export interface LiveSession {
  readonly sessionId: string;
  readonly type: string;
  readonly attachment: number;
  readonly phase: string;
}

export interface LiveInstance {
  readonly instanceId: string;
  /** Sequence of the last commit when the history was read. */
  readonly lastSeq: number;
  readonly needs: readonly Need[];
  readonly anchor: number | undefined;
  readonly sessions: readonly LiveSession[];
  readonly parked: boolean;
  readonly cancelRequestedAt: number | undefined;
}

export interface LiveBounds {
  /** Time between two looks at a suspect. */
  readonly settleMs: number;
  readonly looks: number;
  /** How late a timer, a deadline or a message may be. */
  readonly overdueMs: number;
  /** How long a cancelled instance that waits for nothing may take to end. */
  readonly cancelMs: number;
}

export const liveInstance = (
  folded: Folded,
  { lastSeq, parked, now, bounds }: { lastSeq: number; parked: boolean; now: number; bounds: LiveBounds },
): LiveInstance => ({
  instanceId: folded.state.instanceId,
  lastSeq,
  parked,
  needs: needsOf(folded, now - bounds.overdueMs),
  anchor: folded.last?.anchor,
  cancelRequestedAt: folded.state.cancelRequested ? folded.cancelRequestedAt : undefined,
  sessions: [...folded.state.sessions.values()]
    .filter(({ owner }) => owner === folded.state.instanceId)
    .map(({ sessionId, type, attachments, phase }) => ({
      sessionId,
      type,
      attachment: attachments,
      phase: phase.kind,
    })),
});

interface Suspect {
  live: LiveInstance;
  missing: readonly Need[];
}

/** Parked instances are left out: they wait for a deployment, not for work. */
export async function checkInstances(
  installation: Installation,
  all: readonly LiveInstance[],
  bounds: LiveBounds,
  findings: Findings,
): Promise<void> {
  let suspects: Suspect[] = all
    .filter(({ parked }) => !parked)
    .map((live) => ({ live, missing: live.needs }));
  let mail: Map<string, Found["oldMail"][number]> | undefined;
  for (let look = 1; look <= bounds.looks; look++) {
    if (look > 1) {
      if (suspects.length === 0 && mail?.size === 0) return;
      await sleep(installation.clock, bounds.settleMs);
      suspects = await unmoved(installation, suspects);
    }
    const now = await installation.now();
    const found = await foundAmong(installation, wantedBy(suspects), now - bounds.overdueMs);
    suspects = suspects.flatMap(({ live, missing }) => {
      const still = missing.filter(({ anyOf }) => !anyOf.some((key) => found.keys.has(key)));
      return still.length > 0 || isSlowToEnd(live, found, now, bounds) ? [{ live, missing: still }] : [];
    });
    const old = new Map(found.oldMail.map((one) => [`${one.instanceId} ${one.seq}`, one]));
    mail = mail ? new Map([...mail].filter(([key]) => old.has(key))) : old;
  }
  for (const { live, missing } of suspects) reportMissing(live, missing, findings);
  const parked = new Set(all.flatMap(({ instanceId, parked: isParked }) => (isParked ? [instanceId] : [])));
  for (const { instanceId, subject, seq, at } of mail?.values() ?? [])
    if (!parked.has(instanceId))
      findings.violation(
        "I9",
        instanceId,
        `${installation.names.published(subject)} (inbox message ${seq}) waits since ${new Date(at).toISOString()}`,
      );
}

function wantedBy(suspects: readonly Suspect[]): Set<string> {
  const wanted = new Set<string>();
  for (const { live, missing } of suspects) {
    for (const { anyOf } of missing) for (const key of anyOf) wanted.add(key);
    if (live.anchor !== undefined) wanted.add(keys.anchor(live.instanceId, live.anchor));
    if (live.cancelRequestedAt !== undefined) wanted.add(keys.mail(live.instanceId));
  }
  return wanted;
}

/** Drops suspects that have a new commit: they are not stuck. */
async function unmoved(installation: Installation, suspects: readonly Suspect[]): Promise<Suspect[]> {
  const still: Suspect[] = [];
  for (const suspect of suspects) {
    const found = await installation.histories.find(suspect.live.instanceId);
    if (found?.lastSeq === suspect.live.lastSeq) still.push(suspect);
  }
  return still;
}

/** I16: the code got the cancel, and nothing open could delay it. */
const isSlowToEnd = (live: LiveInstance, found: Found, now: number, { cancelMs }: LiveBounds): boolean =>
  live.cancelRequestedAt !== undefined &&
  live.needs.length === 0 &&
  now - live.cancelRequestedAt > cancelMs &&
  !found.keys.has(keys.mail(live.instanceId));

function reportMissing(
  { instanceId, cancelRequestedAt, needs }: LiveInstance,
  missing: readonly Need[],
  findings: Findings,
): void {
  for (const { what, law } of missing)
    findings.violation(
      law,
      instanceId,
      law === "I8"
        ? `${what}, has no lease any more, and the instance got no report of it`
        : `it waits for ${what}, and no process or queue has it`,
    );
  if (missing.length === 0 && needs.length === 0 && cancelRequestedAt !== undefined)
    findings.violation(
      "I16",
      instanceId,
      `it was asked to cancel at ${new Date(cancelRequestedAt).toISOString()}, waits for nothing, and has not ended`,
    );
}
