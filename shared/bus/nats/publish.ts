/** Publishing, the hot path: one request, one promise, headers built by hand. */
import { setTimeout as delay } from "node:timers/promises";
import type { Msg } from "@nats-io/nats-core";
import { Fault } from "../../errors/index.ts";
import type { PublishOptions, PublishOutcome } from "../bus.ts";
import { headerNames } from "../delivery/header-names.ts";
import { scheduleHeader, scheduleText } from "../schedules.ts";
import { statusOf, WireHeaders } from "./headers.ts";
import type { Link } from "./link.ts";
import type { Failed, Mux, ReplyHandler } from "./mux.ts";
import {
  type ApiError,
  busClosed,
  faultFrom,
  isConflict,
  isInProcess,
  noStream,
  tooLarge,
} from "./nats-errors.ts";

interface PubAck {
  seq: number;
  duplicate?: boolean;
  error?: ApiError;
}

const defaultTimeoutMs = 5_000;
/** In a cluster a leader may die with the request: the caller then reads the stream and asks the new leader. */
const clusterTimeoutMs = 2_000;
const askAgainMs = 200;
/** No stream takes the subject. */
const nobody = Symbol("nobody");
/** An earlier try of the same message is being stored. */
const inProcess = Symbol("in process");
type Answer = PublishOutcome | typeof nobody | typeof inProcess;
const unknown: PublishOutcome = { kind: "unknown" };
const conflict: PublishOutcome = { kind: "conflict" };

export class Publisher {
  readonly #link: Link;
  readonly #mux: Mux;
  readonly #handler: ReplyHandler<Answer> = {
    ofReply: outcomeOf,
    ofFailure: (why, subject) => this.#failed(why, subject),
  };

  constructor(link: Link, mux: Mux) {
    this.#link = link;
    this.#mux = mux;
  }

  async publish(subject: string, body: Uint8Array, options: PublishOptions = {}): Promise<PublishOutcome> {
    const headers = headersOf(options);
    const limit = this.#link.info.max_payload;
    if (body.length > limit) throw tooLarge(subject, body.length, limit);
    // With a message id the publish may be repeated: the server stores it once and answers with the same
    // sequence.
    const repeatable = options.msgId !== undefined && options.expectLastSeq === undefined;
    const timeoutMs =
      options.timeoutMs ?? (this.#link.clustered && !repeatable ? clusterTimeoutMs : defaultTimeoutMs);
    const since = performance.now();
    const left = (): number => Math.max(1, timeoutMs - (performance.now() - since));
    for (;;) {
      if (!this.#link.connected && !(await this.#link.ready(left())))
        return this.#failed("disconnected", subject);
      const outcome = await (repeatable
        ? this.#mux.requestRepeatedly(subject, body, headers, left(), this.#handler)
        : this.#mux.request(subject, body, headers, left(), this.#handler));
      if (outcome === inProcess) {
        if (left() <= askAgainMs) return unknown; // BUS-1
      } else if (outcome === nobody) {
        // While a stream of a cluster elects its leader, no server takes the message and nothing is stored.
        if (!this.#link.clustered || left() <= askAgainMs) throw noStream(`publish to ${subject}`);
      } else return outcome;
      await delay(askAgainMs);
    }
  }

  #failed(why: Failed, subject: string): PublishOutcome {
    if (why === "closed" || this.#link.closed) throw busClosed(subject);
    return unknown; // BUS-1
  }
}

function outcomeOf(reply: Msg, subject: string): Answer {
  if (reply.data.length === 0) return statusOf(reply) === 503 ? nobody : unknown;
  const ack = parseAck(reply.data);
  if (ack.error === undefined) return { kind: "stored", seq: ack.seq, duplicate: ack.duplicate === true };
  if (isConflict(ack.error)) return conflict;
  if (isInProcess(ack.error)) return inProcess;
  throw faultFrom(ack.error, `publish to ${subject}`);
}

const parseAck = (data: Uint8Array): PubAck =>
  JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1")) as PubAck;

/** The NATS headers for these options. */
export function headersOf(options: PublishOptions): WireHeaders | undefined {
  const { headers, msgId, expectLastSeq, ttlMs, schedule } = options;
  if (!headers && msgId === undefined && expectLastSeq === undefined && ttlMs === undefined && !schedule) {
    return undefined;
  }
  const wire = new WireHeaders();
  if (headers) wire.addAll(headers);
  if (msgId !== undefined) wire.add(headerNames.messageId, msgId);
  if (expectLastSeq !== undefined) wire.add(headerNames.expectedLastSubjectSeq, String(expectLastSeq));
  if (ttlMs !== undefined) wire.add(headerNames.ttl, ttlHeader(ttlMs));
  if (schedule) {
    wire.add(scheduleHeader, scheduleText(schedule.at));
    wire.add(headerNames.scheduleTarget, schedule.target);
    if (schedule.keptMs !== undefined) wire.add(headerNames.scheduleTtl, ttlHeader(schedule.keptMs));
  }
  return wire;
}

/** The server truncates to whole seconds: 1500 ms would expire after one second. */
function ttlHeader(ttlMs: number): string {
  if (Number.isInteger(ttlMs) && ttlMs >= 1000 && ttlMs % 1000 === 0) return `${ttlMs / 1000}s`;
  throw new Fault("contract", {
    code: "invalid_ttl",
    message: `a time to live of ${ttlMs} ms is not possible: it must be whole seconds, at least one`,
  });
}
