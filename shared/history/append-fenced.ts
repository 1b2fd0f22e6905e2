/**
 * Appends one message under its fence. If no answer comes, the writer reads the stream instead of guessing
 * (BUS-1, F29): the message is recognised by its commit id, and is sent again as long as no other writer has
 * appended. The tries are limited: a stream that does not answer would block the caller, and everything that
 * waits for the caller.
 */
import type { Bus, Headers, StoredMessage } from "../bus/index.ts";
import { headerNames } from "../bus/index.ts";
import { Fault, isFault } from "../errors/index.ts";
import { type Backoff, backoffMs, type Runtime, sleep } from "../runtime/index.ts";

interface FencedMessage {
  stream: string;
  subject: string;
  expectLastSeq: number;
  /** One of the headers is the commit id, unique to this message. */
  headers: Headers;
  body: Uint8Array;
}

export type FencedOutcome = { kind: "stored"; seq: number } | { kind: "conflict" };

const backoff: Backoff = { initialMs: 50, maxMs: 2_000, factor: 2 };
const longestMs = 10_000;

/**
 * Once the signal is aborted the message is not sent again: the writer's successor may have read the history
 * by then, and would not look at it again. Throws a transient fault if it is unknown whether the message is
 * stored; the history or the fence resolves it later.
 */
export async function appendFenced(
  bus: Bus,
  runtime: Runtime,
  instanceId: string,
  message: FencedMessage,
  signal?: AbortSignal,
): Promise<FencedOutcome> {
  const { headers: carried, expectLastSeq } = message;
  const options = { headers: carried, expectLastSeq };
  const outcome = await bus.publish(message.subject, message.body, options);
  if (outcome.kind !== "unknown") return outcome;
  const deadline = runtime.clock.monotonic() + longestMs;
  for (let attempt = 1; ; attempt++) {
    const last = await lookAgain(bus, runtime, message, deadline);
    const landed = last?.headers[headerNames.commit] === carried[headerNames.commit];
    if (landed || (last?.seq ?? 0) !== message.expectLastSeq) {
      // If this message landed and another writer has appended after it, that writer has taken over: fenced
      // all the same.
      runtime.announce({ kind: "append.ambiguous", instanceId, landed });
      return landed && last ? { kind: "stored", seq: last.seq } : { kind: "conflict" };
    }
    if (runtime.clock.monotonic() >= deadline) throw unanswered(message);
    await sleep(runtime.clock, backoffMs(backoff, attempt), signal);
    if (signal?.aborted) return { kind: "conflict" };
    const again = await bus.publish(message.subject, message.body, options);
    if (again.kind === "stored") {
      runtime.announce({ kind: "append.ambiguous", instanceId, landed: false });
      return again;
    }
    // A conflict now may be with this writer's own first try, which landed late: look again.
  }
}

/** Reads from the leader: a replica may not have the message yet. */
async function lookAgain(
  bus: Bus,
  runtime: Runtime,
  message: FencedMessage,
  deadline: number,
): Promise<StoredMessage | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bus.last(message.stream, message.subject, { leader: true });
    } catch (error) {
      if (!isFault(error, "transient") || error.code === "bus_closed") throw error;
      if (runtime.clock.monotonic() >= deadline) throw error;
    }
    await sleep(runtime.clock, backoffMs(backoff, attempt));
  }
}

const unanswered = ({ subject }: FencedMessage): Fault =>
  new Fault("transient", {
    code: "append_unanswered",
    message: `NATS did not answer the append to ${subject}`,
  });
