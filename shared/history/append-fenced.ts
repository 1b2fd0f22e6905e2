/**
 * One message under its fence. An answer that did not come is resolved by looking, never by guessing (BUS-1, F29):
 * the message is recognised by its commit id, and tried again as long as nobody has appended anything. Not for ever: a
 * stream that does not answer would hold whoever waits here, and all that waits for him.
 */
import type { Bus, Headers, StoredMessage } from "../bus/bus.ts";
import { Fault, isFault } from "../errors/index.ts";
import { type Backoff, backoffMs, type Runtime, sleep } from "../runtime/index.ts";
import { headers } from "./headers.ts";

export interface FencedMessage {
  stream: string;
  subject: string;
  expectLastSeq: number;
  /** One of them is the commit id, unique to this message. */
  headers: Headers;
  body: Uint8Array;
}

export type FencedOutcome = { kind: "stored"; seq: number } | { kind: "conflict" };

const backoff: Backoff = { initialMs: 50, maxMs: 2_000, factor: 2 };
const longestMs = 10_000;

/** Throws transient where it cannot be told whether it is stored: by what the history says later, or by the fence. */
export async function appendFenced(
  bus: Bus,
  runtime: Runtime,
  instanceId: string,
  message: FencedMessage,
): Promise<FencedOutcome> {
  const { headers: carried, expectLastSeq } = message;
  const options = { headers: carried, expectLastSeq };
  const outcome = await bus.publish(message.subject, message.body, options);
  if (outcome.kind !== "unknown") return outcome;
  const deadline = runtime.clock.monotonic() + longestMs;
  for (let attempt = 1; ; attempt++) {
    const last = await lookAgain(bus, runtime, message, deadline);
    const landed = last?.headers[headers.commit] === carried[headers.commit];
    if (landed || (last?.seq ?? 0) !== message.expectLastSeq) {
      // If ours landed and somebody has appended on top of it, they have taken over with it: fenced all the same.
      runtime.announce({ kind: "append.ambiguous", instanceId, landed });
      return landed && last ? { kind: "stored", seq: last.seq } : { kind: "conflict" };
    }
    if (runtime.clock.monotonic() >= deadline) throw unanswered(message);
    await sleep(runtime.clock, backoffMs(backoff, attempt));
    const again = await bus.publish(message.subject, message.body, options);
    if (again.kind === "stored") {
      runtime.announce({ kind: "append.ambiguous", instanceId, landed: false });
      return again;
    }
    // A conflict now may be with our own first try, which came late: look.
  }
}

/** From the leader: a replica may not have it yet. */
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
  new Fault("transient", { code: "append_unanswered", message: `append to ${subject}: no answer` });
