/**
 * Releases all leases of a holder whose death is proved, and reports its sessions as lost at once (D1) instead
 * of when their leases expire.
 *
 * DEATH-1 Only a process that saw the holder die may call this: the parent of the holder, or its child. A
 *    holder that is silent keeps its leases until they expire (S5).
 * DEATH-2 Every removal is a CAS on a revision at which the dead holder had the key (S9): two processes that saw the
 *    same death release once, and a key that another holder has stays.
 */
import { type Bus, bucketStream, bucketSubject, connectBus, leaseKeys, parseJson } from "../bus/index.ts";
import { silent } from "../runtime/index.ts";
import { LeaseStore } from "./lease-store.ts";
import { reportLost, type SessionAddress } from "./report-lost.ts";
import type { LeaseConnection } from "./thread-protocol.ts";

/** Identifies a holder to the process that releases its leases after its death. */
export interface DeadHolder {
  /** The worker id, which no later process has (S3). */
  holder: string;
  bucket: string;
  /** The prefix of the installation's subjects. */
  prefix: string;
}

/** A holder's last renewal may be stored after its death: the removal is tried again on the newer revision. */
const tries = 5;
const atOnce = 64;
const timeoutMs = 2_000;

/** Returns how many sessions were reported as lost. Throws a fault if NATS cannot be reached. */
export async function releaseDead(
  connection: LeaseConnection,
  dead: DeadHolder,
  detail: string,
): Promise<number> {
  const bus = await connectBus({ ...connection, name: `${dead.holder}-died`, announce: silent });
  try {
    return await releaseLeasesOf(bus, dead, detail);
  } finally {
    await bus.close();
  }
}

export async function releaseLeasesOf(
  bus: Bus,
  { holder, bucket, prefix }: DeadHolder,
  detail: string,
): Promise<number> {
  const store = new LeaseStore(bus, bucket);
  const keyStart = bucketSubject(bucket, "").length;
  const held: { key: string; revision: number; session: SessionAddress | undefined }[] = [];
  for (const filter of [leaseKeys.allSessions, leaseKeys.allSeats]) {
    for await (const message of bus.lastPerSubject(bucketStream(bucket), bucketSubject(bucket, filter))) {
      const value = leaseIn(message.body);
      if (value?.holder !== holder) continue;
      const key = message.subject.slice(keyStart);
      held.push({ key, revision: message.seq, session: value.session });
    }
  }
  const remove = async (key: string, from: number): Promise<boolean> => {
    let revision = from;
    for (let left = tries; left > 0; left--) {
      const outcome = await store.remove({ key, claimId: `dead-${holder}`, expected: revision, timeoutMs });
      if (outcome.kind === "stored") return true;
      const look = await store.look(key);
      if (look.kind !== "held" || look.holder !== holder) return false;
      revision = look.revision;
    }
    return false;
  };
  let reported = 0;
  const release = async ({ key, revision, session }: (typeof held)[number]) => {
    const removed = await remove(key, revision);
    if (!removed || session === undefined || leaseKeys.parseSession(key) === undefined) return;
    await reportLost(bus, prefix, session, { reason: "crashed", detail });
    reported++;
  };
  for (let i = 0; i < held.length; i += atOnce) {
    await Promise.all(held.slice(i, i + atOnce).map(release));
  }
  return reported;
}

/** Checked by hand: a process that does nothing until its worker dies should not load a schema library. */
function leaseIn(body: Uint8Array): { holder: unknown; session: SessionAddress | undefined } | undefined {
  const parsed = parseJson(body);
  const value = parsed.kind === "ok" ? parsed.value : undefined;
  if (typeof value !== "object" || value === null || !("holder" in value)) return undefined;
  const session = "session" in value ? addressOf(value.session) : undefined;
  return { holder: value.holder, session };
}

function addressOf(value: unknown): SessionAddress | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { instanceId, sessionId, attachment, lossCapability } = value as Record<string, unknown>;
  if (typeof instanceId !== "string" || typeof sessionId !== "string" || typeof attachment !== "number")
    return undefined;
  return { instanceId, sessionId, attachment, ...(typeof lossCapability === "string" && { lossCapability }) };
}
