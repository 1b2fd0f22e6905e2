/**
 * Which of its two possible places holds the history of an instance.
 *
 * HISTORY-1 An own stream with a commit is the truth, until it is gone or sealed as moved.
 * HISTORY-2 Whoever places an instance in its own stream makes the stream first and looks into the shared one afterwards;
 *    whoever places it in the shared stream appends first and looks for the own stream afterwards. So of two owners who
 *    disagree about the place (one of them stale), at least one sees the other and yields.
 * HISTORY-3 An own stream that is empty beside a shared history is sealed before the shared one is used, so that an owner who
 *    went to sleep between making the stream and appending to it wakes up fenced (T4).
 * HISTORY-4 Who decides by what it finds asks the leader. A copy that lags makes news look old, and what is found to be old is
 *    acknowledged without an append that would be fenced.
 */
import type { Bus, StoredMessage } from "../bus/bus.ts";
import type { Subjects } from "../bus/subjects.ts";
import { hash32, type Runtime, token } from "../runtime/index.ts";
import { appendFenced, type FencedOutcome } from "./append-fenced.ts";
import { headers, type Seal, sealOf } from "./headers.ts";

export interface Place {
  readonly stream: string;
  readonly subject: string;
}

export interface Located extends Place {
  /** Last message, a commit or a seal of kind `archive`. */
  readonly last: StoredMessage;
}

export const ownPlace = (names: Subjects, instanceId: string): Place => ({
  stream: names.ownHistoryStream(instanceId),
  subject: names.ownHistory(instanceId),
});

export function sharedPlace(names: Subjects, instanceId: string, shards: number): Place {
  const shard = hash32(instanceId) % shards;
  return { stream: names.sharedHistoryStream(shard), subject: names.sharedHistory(shard, instanceId) };
}

export async function locate(
  bus: Bus,
  runtime: Runtime,
  instanceId: string,
  { own, shared, leader }: { own: Place; shared: Place; leader: boolean },
): Promise<Located | undefined> {
  const [ownLast, sharedLast] = await Promise.all([
    bus.last(own.stream, own.subject, { leader }),
    bus.last(shared.stream, shared.subject, { leader }),
  ]);
  if (ownLast && sealOf(ownLast) !== "moved") return { ...own, last: ownLast };
  if (!sharedLast) return undefined;
  if (!ownLast && isFirstCommit(sharedLast)) {
    const overtaken = await sealIfEmpty(bus, runtime, instanceId, own);
    if (overtaken) return { ...own, last: overtaken };
  }
  return { ...shared, last: sharedLast };
}

/** Only the very first commit can be one whose writer has not looked for the own stream yet (HISTORY-2). */
const isFirstCommit = (message: StoredMessage): boolean =>
  message.headers[headers.executionStart] === undefined && message.headers[headers.archived] === undefined;

/** HISTORY-3. The own stream's commit, where one was there after all. */
async function sealIfEmpty(
  bus: Bus,
  runtime: Runtime,
  instanceId: string,
  own: Place,
): Promise<StoredMessage | undefined> {
  if (!(await bus.streamInfo(own.stream))) return undefined;
  await retire(bus, runtime, instanceId, own);
  const last = await bus.last(own.stream, own.subject, { leader: true });
  return last && sealOf(last) !== "moved" ? last : undefined;
}

/** Takes an empty own stream out of the way. Sealed first: one that has got a commit meanwhile stays. */
export async function retire(bus: Bus, runtime: Runtime, instanceId: string, own: Place): Promise<void> {
  const outcome = await seal(bus, runtime, instanceId, own, "moved", undefined);
  if (outcome.kind === "stored") await deleteOwn(bus, own, outcome.seq);
}

/**
 * Deletes the own stream whose last message is this one (undefined: an empty one, whose next append is fenced and tried
 * again). NATS deletes streams by name alone: so whoever was paused looks once more, and one begun anew stays.
 */
export async function deleteOwn(bus: Bus, own: Place, lastSeq: number | undefined): Promise<boolean> {
  const last = await bus.last(own.stream, own.subject, { leader: true });
  return last?.seq === lastSeq && bus.deleteStream(own.stream);
}

/** Ends a stream: nothing can be appended behind the given last message any more. */
export function seal(
  bus: Bus,
  runtime: Runtime,
  instanceId: string,
  place: Place,
  kind: Seal,
  last: StoredMessage | undefined,
): Promise<FencedOutcome> {
  const start = last && (last.headers[headers.executionStart] ?? String(last.seq));
  return appendFenced(bus, runtime, instanceId, {
    ...place,
    expectLastSeq: last?.seq ?? 0,
    headers: {
      [headers.commit]: `seal-${token(runtime.random)}`,
      [headers.sealed]: kind,
      ...(last && start ? { [headers.sealedLast]: String(last.seq), [headers.executionStart]: start } : {}),
    },
    body: new Uint8Array(),
  });
}
