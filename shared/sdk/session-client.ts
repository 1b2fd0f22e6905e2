/** Sessions from outside: look, explain, take away, send something to the live state. */
import { SessionRecord, type SessionWork, WorkerInfo } from "../../schemas/index.ts";
import {
  Bucket,
  type Bus,
  encode,
  leaseKeys,
  type Payloads,
  requireToken,
  type Subjects,
  TypedBucket,
} from "../bus/index.ts";
import { HoldfastError, SessionLostError, SessionUnusable } from "../errors/index.ts";
import { LeaseStore, type Look } from "../leases/index.ts";
import { type Runtime, token } from "../runtime/index.ts";
import { explain } from "../sessions/explain.ts";
import { Newest } from "./newest.ts";
import { publishSurely } from "./publish-surely.ts";
import { userFacing } from "./user-facing.ts";

export interface SessionDescription {
  record: SessionRecord;
  /** What its holder last said of it: calls, queue, snapshot. */
  live: WorkerInfo["sessions"][number] | undefined;
  lease: Look;
  /** Where it is and why, in sentences. */
  explanation: string[];
}

export interface SessionListOptions {
  type?: string | undefined;
  instanceId?: string | undefined;
  phase?: SessionRecord["phase"] | undefined;
  /** At most so many, the latest. Default: all. */
  limit?: number | undefined;
}

export interface SessionAccess {
  readonly sessionId: string;
  /** To `ctx.session.events` of the live state, in order. Rejects where nobody holds the session. */
  send(name: string, payload?: unknown): Promise<void>;
  describe(): Promise<SessionDescription>;
  /** Takes it from its holder at once; its instance hears `session_lost` with reason `evicted`. */
  evict(reason?: string): Promise<void>;
  /** Lets it go gently: its calls finish, its state is saved where the type can, the next holder goes on. */
  drain(reason?: string): Promise<void>;
}

export interface ClientParts {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  payloads: Payloads;
}

export class SessionClient {
  readonly #parts: ClientParts;
  readonly #records: TypedBucket<SessionRecord>;
  readonly #workers: TypedBucket<WorkerInfo>;
  readonly #leases: LeaseStore;

  constructor(parts: ClientParts) {
    const { bus, names, runtime } = parts;
    this.#parts = parts;
    const bucket = (name: "sessions" | "workers") =>
      new Bucket(bus, names.bucket(name), { random: runtime.random });
    this.#records = new TypedBucket<SessionRecord>(bucket("sessions"), SessionRecord, runtime.announce);
    this.#workers = new TypedBucket<WorkerInfo>(bucket("workers"), WorkerInfo, runtime.announce);
    this.#leases = new LeaseStore(bus, names.bucket("leases"));
  }

  /** Latest first. */
  list(options: SessionListOptions = {}): Promise<SessionRecord[]> {
    return userFacing(async () => {
      const { type, instanceId, phase, limit = Number.POSITIVE_INFINITY } = options;
      const fits = (record: SessionRecord) =>
        (type === undefined || record.type === type) &&
        (instanceId === undefined || record.instanceId === instanceId) &&
        (phase === undefined || record.phase === phase);
      const found = new Newest<SessionRecord>(limit, (a, b) => b.openedAt - a.openedAt);
      for await (const { key, value } of this.#records.entries()) {
        found.put(key, fits(value) ? value : undefined);
      }
      return found.take();
    });
  }

  describe(sessionId: string): Promise<SessionDescription> {
    return userFacing(async () => {
      const record = await this.#record(sessionId);
      const workers: WorkerInfo[] = [];
      for await (const { value } of this.#workers.entries()) workers.push(value);
      const lease: Look =
        record.attachment === 0
          ? { kind: "none" }
          : await this.#leases.look(leaseKeys.session(sessionId, record.attachment));
      const holder = workers.find(({ workerId }) => workerId === record.workerId);
      const live = holder?.sessions.find(
        (held) => held.sessionId === sessionId && held.epoch === record.epoch,
      );
      const explanation = explain(record, workers, lease, this.#parts.runtime.clock.now());
      return { record, live, lease, explanation };
    });
  }

  evict(sessionId: string, reason?: string): Promise<void> {
    return this.#giveUp("evict", sessionId, reason);
  }

  /** As its worker would when it drains: what runs may finish, the state is saved where the type can (S13). */
  drain(sessionId: string, reason?: string): Promise<void> {
    return this.#giveUp("drain", sessionId, reason);
  }

  send(sessionId: string, name: string, payload?: unknown): Promise<void> {
    return userFacing(async () => {
      const event = requireToken("event name", name) as Extract<SessionWork, { kind: "event" }>["name"];
      const { workerId, instanceId } = await this.#held(sessionId);
      const wrapped = await this.#parts.payloads.wrap(payload, instanceId);
      await this.#post(workerId, sessionId, { v: 1, kind: "event", name: event, payload: wrapped });
    });
  }

  access(sessionId: string): SessionAccess {
    return {
      sessionId,
      send: (name, payload) => this.send(sessionId, name, payload),
      describe: () => this.describe(sessionId),
      evict: (reason) => this.evict(sessionId, reason),
      drain: (reason) => this.drain(sessionId, reason),
    };
  }

  #giveUp(kind: "evict" | "drain", sessionId: string, reason: string | undefined): Promise<void> {
    return userFacing(async () => {
      const { workerId, epoch } = await this.#held(sessionId);
      await this.#post(workerId, sessionId, {
        v: 1,
        kind,
        ...(epoch === undefined ? {} : { epoch }),
        ...(reason === undefined ? {} : { reason }),
      });
    });
  }

  async #record(sessionId: string): Promise<SessionRecord> {
    const entry = await this.#records.get(requireToken("session id", sessionId));
    if (entry) return entry.value;
    throw new HoldfastError({ code: "session_not_found", message: `there is no session ${sessionId}` });
  }

  async #held(
    sessionId: string,
  ): Promise<SessionRecord & { workerId: NonNullable<SessionRecord["workerId"]> }> {
    const record = await this.#record(sessionId);
    const { workerId, phase, epoch, lost } = record;
    if (phase === "lost") {
      throw new SessionLostError({
        sessionId,
        epoch,
        workerId,
        reason: lost?.reason ?? "expired",
        detail: lost?.detail,
      });
    }
    if (phase === "closed" || phase === "failed") {
      throw new SessionUnusable({ code: "session_unusable", message: `session ${sessionId} is ${phase}` });
    }
    if (workerId !== undefined && phase !== "opening" && phase !== "parked") return { ...record, workerId };
    throw new HoldfastError({
      code: "session_unheld",
      message: `nobody holds session ${sessionId} (${phase})`,
      retryable: true,
    });
  }

  async #post(workerId: string, sessionId: string, work: SessionWork): Promise<void> {
    const { bus, names, runtime } = this.#parts;
    await publishSurely(bus, {
      subject: names.sessionWork(workerId, sessionId),
      body: encode(work),
      msgId: `${work.kind}-${sessionId}-${token(runtime.random)}`,
    });
  }
}
