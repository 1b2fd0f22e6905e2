/**
 * Finds which of its two possible places holds the history of an instance.
 *
 * HISTORY-1 An own stream with a commit is the truth, until it is gone or sealed as moved.
 * HISTORY-2 An owner that places an instance in its own stream makes the stream first and looks into the
 *    shared one afterwards; an owner that places it in the shared stream appends first and looks for the own
 *    stream afterwards. So of two owners that disagree about the place (one of them stale), at least one sees
 *    the other and yields.
 * HISTORY-3 An own stream that is empty beside a shared history is sealed before the shared one is used, so
 *    that an owner that was paused between making the stream and appending to it wakes up fenced (T4).
 * HISTORY-5 An own stream that ends with a copy from the shared stream is the truth only if the shared stream
 *    is sealed as `own`; until then the shared stream is (move-to-own.ts).
 * HISTORY-4 A process that decides by what it reads asks the leader. A replica that lags makes new messages
 *    look old, and a message found to be old is acknowledged without an append that would be fenced.
 */
import type { Bus, StoredMessage, Subjects } from "../bus/index.ts";
import { headerNames } from "../bus/index.ts";
import { hash32, type Runtime, token } from "../runtime/index.ts";
import { appendFenced, type FencedOutcome } from "./append-fenced.ts";
import { isCopy, type Seal, sealOf } from "./headers.ts";

export interface Place {
  readonly stream: string;
  readonly subject: string;
}

export interface Located extends Place {
  /** The last message: a commit, or a seal of kind `archive`. */
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
  if (sharedLast && sealOf(sharedLast) === "own") {
    // Read again: what was read before may be from before the move. A stream that is gone was archived.
    const last = await bus.last(own.stream, own.subject, { leader });
    return last ? { ...own, last } : { ...shared, last: sharedLast };
  }
  if (ownLast && sealOf(ownLast) !== "moved" && !isCopy(ownLast)) return { ...own, last: ownLast };
  if (!sharedLast) return undefined;
  if (!ownLast && isFirstCommit(sharedLast)) {
    const overtaken = await sealIfEmpty(bus, runtime, instanceId, own);
    if (overtaken) return { ...own, last: overtaken };
  }
  return { ...shared, last: sharedLast };
}

/** True for a very first commit. Only its writer may not have looked for the own stream yet (HISTORY-2). */
export const isFirstCommit = (message: StoredMessage): boolean =>
  message.headers[headerNames.executionStart] === undefined &&
  message.headers[headerNames.archived] === undefined;

/** HISTORY-3. Returns the own stream's commit if it turns out to have one. */
async function sealIfEmpty(
  bus: Bus,
  runtime: Runtime,
  instanceId: string,
  own: Place,
): Promise<StoredMessage | undefined> {
  if (!(await bus.streamInfo(own.stream))) return undefined;
  await retire(bus, runtime, instanceId, own);
  const last = await bus.last(own.stream, own.subject, { leader: true });
  return last && sealOf(last) !== "moved" && !isCopy(last) ? last : undefined;
}

/** Removes an empty own stream. It is sealed first, so that a stream that got a commit meanwhile stays. */
export async function retire(bus: Bus, runtime: Runtime, instanceId: string, own: Place): Promise<void> {
  const outcome = await seal(bus, runtime, instanceId, own, "moved", undefined);
  if (outcome.kind === "stored") await deleteOwn(bus, own, outcome.seq);
}

/**
 * Deletes the own stream if this is still its last message (undefined: an empty stream, whose next append is
 * fenced and tried again). NATS deletes streams by name alone: so a process that was paused reads the last
 * message once more, and a stream begun anew stays.
 */
export async function deleteOwn(bus: Bus, own: Place, lastSeq: number | undefined): Promise<boolean> {
  const last = await bus.last(own.stream, own.subject, { leader: true });
  return last?.seq === lastSeq && bus.deleteStream(own.stream);
}

/** Ends a stream: no message can be appended after the given last message any more. */
export function seal(
  bus: Bus,
  runtime: Runtime,
  instanceId: string,
  place: Place,
  kind: Seal,
  last: StoredMessage | undefined,
): Promise<FencedOutcome> {
  const start = last && (last.headers[headerNames.executionStart] ?? String(last.seq));
  return appendFenced(bus, runtime, instanceId, {
    ...place,
    expectLastSeq: last?.seq ?? 0,
    headers: {
      [headerNames.commit]: `seal-${token(runtime.random)}`,
      [headerNames.sealed]: kind,
      ...(last && start
        ? { [headerNames.sealedLast]: String(last.seq), [headerNames.executionStart]: start }
        : {}),
    },
    body: new Uint8Array(),
  });
}

/**
 * Writes a mark: messages before it are no longer part of the history. It is written as the seal of an
 * archive that begins with itself, so that older versions read it in the same way.
 */
export function writeForgottenMark(
  bus: Bus,
  runtime: Runtime,
  instanceId: string,
  place: Place,
  last: StoredMessage,
): Promise<FencedOutcome> {
  return appendFenced(bus, runtime, instanceId, {
    ...place,
    expectLastSeq: last.seq,
    headers: {
      [headerNames.commit]: `writeForgottenMark-${token(runtime.random)}`,
      [headerNames.sealed]: "archive" satisfies Seal,
      [headerNames.archived]: "1",
      [headerNames.sealedLast]: "0",
      [headerNames.executionStart]: last.headers[headerNames.executionStart] ?? String(last.seq),
    },
    body: new Uint8Array(),
  });
}
