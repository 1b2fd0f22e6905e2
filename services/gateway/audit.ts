/**
 * The audit: one entry in the `AUDIT` stream before each action, with the caller and the time, so that every
 * action is recorded.
 */
import { AuditEntry } from "../../schemas/index.ts";
import type { Bus, Subjects } from "../../shared/bus/index.ts";
import type { Clock } from "../../shared/runtime/index.ts";
import { unknownOutcome } from "./http/problem.ts";
import type { Caller } from "./http/route.ts";
import { parseBody } from "./live/bucket-tail.ts";

export interface Audited {
  action: string;
  target: string;
  with?: Record<string, string> | undefined;
}

/** For how long one entry stands, while the same caller reads the same thing again and again. */
const standsMs = { one: 60_000, list: 3_600_000 };
const mostNoted = 10_000;

export class Audit {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #clock: Clock;
  readonly #reads: boolean;
  /** Reads in the audit already: `caller action target` to the time until which the entry stands. */
  readonly #noted = new Map<string, number>();

  constructor(bus: Bus, names: Subjects, clock: Clock, { reads }: { reads: boolean }) {
    this.#reads = reads;
    this.#bus = bus;
    this.#names = names;
    this.#clock = clock;
  }

  /** Throws if the entry could not be stored: the action must not happen then. */
  asked(caller: Caller, what: Audited): Promise<void> {
    return this.#write(caller, what, { outcome: "asked" });
  }

  failed(caller: Caller, what: Audited, message: string): Promise<void> {
    return this.#write(caller, what, { outcome: "failed", message });
  }

  /**
   * Before users' values are shown (GATEWAY-8). A page that follows an instance asks after every turn: one entry
   * stands for a minute. Of a list, of which somebody may have a page open all day, one stands for an hour: entries of
   * reads must not push those of changes out of the stream.
   */
  async read(caller: Caller, what: Audited, kind: keyof typeof standsMs = "one"): Promise<void> {
    if (!this.#reads) return;
    const now = this.#clock.monotonic();
    const key = JSON.stringify([caller.name, caller.from, what.action, what.target]);
    if (now < (this.#noted.get(key) ?? now)) return;
    await this.asked(caller, what);
    this.#noted.delete(key);
    this.#noted.set(key, now + standsMs[kind]);
    for (const [oldest, until] of this.#noted) {
      if (now < until && this.#noted.size <= mostNoted) break;
      this.#noted.delete(oldest);
    }
  }

  /** Newest first. */
  async entries(limit: number): Promise<AuditEntry[]> {
    const stream = this.#names.auditStream;
    const info = await this.#bus.streamInfo(stream);
    if (!info || info.messages === 0) return [];
    const from = Math.max(info.firstSeq, info.lastSeq - limit + 1);
    const messages = (await this.#bus.read(stream, this.#names.auditSubjects[0] ?? "", from)) ?? [];
    return messages.flatMap((message) => parseBody(AuditEntry, message.body) ?? []).reverse();
  }

  async #write(caller: Caller, what: Audited, rest: Pick<AuditEntry, "outcome" | "message">): Promise<void> {
    const entry: AuditEntry = {
      v: 1,
      at: this.#clock.now(),
      who: caller.name,
      role: caller.role,
      from: caller.from,
      action: what.action,
      target: what.target,
      ...(what.with ? { with: what.with } : {}),
      ...rest,
    };
    const body = Buffer.from(JSON.stringify(entry));
    const outcome = await this.#bus.publish(this.#names.audit(what.action), body);
    if (outcome.kind !== "stored") throw unknownOutcome();
  }
}
