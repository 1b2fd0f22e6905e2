/**
 * The first sequence of a new stream: the time of the server this client is connected to, so that a stream
 * created anew never uses a sequence again (see `StreamSpec.sequencesByTime`). This machine's wall clock may
 * be wrong, or be set: the server is asked once per connection, and the monotonic clock counts on from there.
 */
import type { Link } from "./link.ts";
import type { Failed, Mux, ReplyHandler } from "./mux.ts";
import { emptyBody } from "./wire.ts";

/**
 * Every user may send this request, unless its permissions list the subjects it may publish to without this
 * one.
 */
const subject = "$SYS.REQ.USER.INFO";
const timeoutMs = 2_000;

/** The server's JSON is trusted to have the documented shape. */
interface UserInfo {
  server?: { time?: string };
}

export class FirstSequence {
  readonly #mux: Mux;
  /** The server's time minus the monotonic time. */
  #offsetMs: Promise<number | undefined> | undefined;

  constructor(link: Link, mux: Mux) {
    this.#mux = mux;
    link.onState(() => {
      this.#offsetMs = undefined; // The next server may have another clock.
    });
  }

  /** Epoch microseconds of the server, or of this process if the server does not answer. */
  async next(): Promise<number> {
    this.#offsetMs ??= this.#measure();
    const offsetMs = await this.#offsetMs;
    if (offsetMs === undefined) this.#offsetMs = undefined;
    return Math.floor((offsetMs === undefined ? Date.now() : offsetMs + performance.now()) * 1_000);
  }

  async #measure(): Promise<number | undefined> {
    const asked = performance.now();
    const answer = await this.#mux
      .request<number | undefined>(subject, emptyBody, undefined, timeoutMs, handler)
      .catch(() => undefined); // not permitted
    return answer && answer - (asked + performance.now()) / 2;
  }
}

const handler: ReplyHandler<number | undefined> = {
  ofReply: (message) => {
    if (message.data.length === 0) return undefined; // An empty reply: no responder.
    const info = JSON.parse(new TextDecoder().decode(message.data)) as UserInfo;
    const at = Date.parse(info.server?.time ?? "");
    return Number.isNaN(at) ? undefined : at;
  },
  ofFailure: (_why: Failed) => undefined,
};
