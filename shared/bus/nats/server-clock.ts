/**
 * The clock of the server this client is connected to. Asked once for each connection: a process whose own clock is
 * wrong must not create streams whose sequences were given out before (see `StreamSpec.sequencesByTime`).
 */
import type { ServerTime } from "../bus.ts";
import type { Link } from "./link.ts";
import type { Failed, Meaning, Mux } from "./mux.ts";
import { emptyBody } from "./wire.ts";

/** Every user may ask it, unless its permissions name the subjects it may publish to and leave this one out. */
const subject = "$SYS.REQ.USER.INFO";
const timeoutMs = 2_000;

/** The server is the one party whose JSON is trusted to have the documented shape. */
interface UserInfo {
  server?: { time?: string };
}

export class ServerClock {
  readonly #mux: Mux;
  #known: Promise<ServerTime | undefined> | undefined;

  constructor(link: Link, mux: Mux) {
    this.#mux = mux;
    link.onState(() => {
      this.#known = undefined; // the next server may have another clock
    });
  }

  /** Measured once for each connection; undefined where the server does not say. */
  async reading(): Promise<ServerTime | undefined> {
    this.#known ??= this.measure();
    const reading = await this.#known;
    if (reading === undefined) this.#known = undefined;
    return reading;
  }

  async measure(): Promise<ServerTime | undefined> {
    const before = Date.now();
    const startedAt = performance.now();
    const answer = await this.#mux
      .request<number | undefined>(subject, emptyBody, undefined, timeoutMs, meaning)
      .catch(() => undefined); // not permitted: the caller goes by its own clock
    if (answer === undefined) return undefined;
    const tookMs = performance.now() - startedAt;
    return { aheadMs: answer - (before + tookMs / 2), unsureMs: tookMs / 2 };
  }

  /** Epoch microseconds of the server, or of this process where the server does not say. */
  async nowMicros(): Promise<number> {
    const reading = await this.reading();
    return Math.floor((Date.now() + (reading?.aheadMs ?? 0)) * 1_000);
  }
}

const meaning: Meaning<number | undefined> = {
  ofReply: (message) => {
    if (message.data.length === 0) return undefined; // nobody answers there
    const info = JSON.parse(new TextDecoder().decode(message.data)) as UserInfo;
    const at = Date.parse(info.server?.time ?? "");
    return Number.isNaN(at) ? undefined : at;
  },
  ofFailure: (_why: Failed) => undefined,
};
