/** Sessions, for clients: list, describe, evict, drain, send events to the live state. */
import { z } from "zod";
import { keyMetadataKey, SessionRecord, type SessionWork, WorkerInfo } from "../../../schemas/index.ts";
import {
  Bucket,
  decode,
  encode,
  leaseKeys,
  publishOrThrow,
  requireToken,
  TypedBucket,
} from "../../bus/index.ts";
import { type BlobInfo, requireKey, type SessionBlobs } from "../../definitions/index.ts";
import { fromFailure, HoldfastError, SessionLostError, SessionUnusable } from "../../errors/index.ts";
import { type LeaseKeyState, LeaseStore } from "../../leases/index.ts";
import { token } from "../../runtime/index.ts";
import { explain, figuresOf, type SessionFigures } from "../../sessions/index.ts";
import { Newest } from "../instance/newest.ts";
import { ErrorReply } from "../keyed/error-reply.ts";
import { userFacing } from "../user-facing.ts";
import type { ClientParts } from "./client-options.ts";

const Closed = z.object({ closed: z.boolean() });

/** A session's record, and the latest report of its holder. */
export interface SessionDescription {
  record: SessionRecord;
  /** The holder's latest report: calls, queue, snapshot. Undefined if no live worker reports it. */
  live: WorkerInfo["sessions"][number] | undefined;
  lease: LeaseKeyState;
  /** Age, last use, calls, errors, queue, memory, model loads, rebuilds and owners. */
  figures: SessionFigures;
  /** Where the session is and why, in sentences. */
  explanation: string[];
}

/** Which sessions to list. */
export interface SessionListOptions {
  type?: string | undefined;
  instanceId?: string | undefined;
  phase?: SessionRecord["phase"] | undefined;
  /** Only sessions that belong to this key. */
  key?: string | undefined;
  /** Only sessions whose metadata contains all of these entries. */
  metadata?: Readonly<Record<string, string>> | undefined;
  /** At most this many, the newest. Default: all. */
  limit?: number | undefined;
}

/** One session: send it an event, describe it, evict it from its holder, drain it to another. */
export interface SessionAccess {
  readonly sessionId: string;
  /** Delivers to `ctx.session.events` of the live state, in order. Rejects if no worker holds the session. */
  send(name: string, payload?: unknown): Promise<void>;
  /** The session's record, its holder's latest report, and where it is and why. */
  describe(): Promise<SessionDescription>;
  /** The blobs that code inside the session stored under names (`ctx.session.blobs`). */
  readonly blobs: Pick<SessionBlobs, "get" | "list">;
  /**
   * Takes the session from its holder at once; its instance receives `session_lost` with reason `evicted`.
   */
  evict(reason?: string): Promise<void>;
  /**
   * Moves the session without loss: its calls finish, its state is saved if the type supports it, and the
   * next holder continues.
   */
  drain(reason?: string): Promise<void>;
}

/**
 * Lists sessions and gives access to single ones.
 *
 * @example
 * ```ts
 * for (const { sessionId } of await client.sessions.list({ type: "classifier", phase: "active" }))
 *   await client.sessions.drain(sessionId, "new model");
 * ```
 */
export class SessionClient {
  readonly #parts: ClientParts;
  readonly #records: TypedBucket<SessionRecord>;
  readonly #workers: TypedBucket<WorkerInfo>;
  readonly #leases: LeaseStore;

  /** @internal Part of {@link Client}. */
  constructor(parts: ClientParts) {
    const { bus, names, runtime } = parts;
    this.#parts = parts;
    const bucket = (name: "sessions" | "workers") =>
      new Bucket(bus, names.bucket(name), { random: runtime.random });
    this.#records = new TypedBucket<SessionRecord>(bucket("sessions"), SessionRecord, runtime.announce);
    this.#workers = new TypedBucket<WorkerInfo>(bucket("workers"), WorkerInfo, runtime.announce);
    this.#leases = new LeaseStore(bus, names.bucket("leases"));
  }

  /** Sessions, newest first. */
  list(options: SessionListOptions = {}): Promise<SessionRecord[]> {
    return userFacing(async () => {
      const { type, instanceId, phase, key, metadata = {}, limit = Number.POSITIVE_INFINITY } = options;
      const wanted = Object.entries(metadata);
      const fits = (record: SessionRecord) =>
        (key === undefined || record.metadata[keyMetadataKey] === key) &&
        wanted.every(([name, value]) => record.metadata[name] === value) &&
        (type === undefined || record.type === type) &&
        (instanceId === undefined || record.instanceId === instanceId) &&
        (phase === undefined || record.phase === phase);
      const found = new Newest<SessionRecord>(limit, (a, b) => b.openedAt - a.openedAt);
      for await (const { key, value } of this.#records.entries()) {
        found.put(key, fits(value) ? value : undefined);
      }
      return found.sorted();
    });
  }

  describe(sessionId: string): Promise<SessionDescription> {
    return userFacing(async () => {
      const record = await this.#record(sessionId);
      const workers: WorkerInfo[] = [];
      for await (const { value } of this.#workers.entries()) workers.push(value);
      const lease: LeaseKeyState =
        record.attachment === 0
          ? { kind: "none" }
          : await this.#leases.look(leaseKeys.session(sessionId, record.attachment));
      const holder = workers.find(({ workerId }) => workerId === record.workerId);
      const live = holder?.sessions.find(
        (held) => held.sessionId === sessionId && held.epoch === record.epoch,
      );
      const now = this.#parts.runtime.clock.now();
      const explanation = explain(record, workers, lease, now);
      return { record, live, lease, figures: figuresOf(record, holder, live, now), explanation };
    });
  }

  /** Closes the session of a key; `closed` is false if it was closed already. */
  closeKey(type: string, key: string, reason?: string): Promise<{ closed: boolean }> {
    return userFacing(async () => {
      const { bus, names } = this.#parts;
      const subject = names.keyed(type, requireKey(key));
      const request = { do: "close", ...(reason !== undefined && { reason }) };
      const reply = await bus.request(subject, encode(request), { timeoutMs: 5_000 });
      if (reply.kind !== "reply")
        throw new HoldfastError({
          code: "session_unreachable",
          message: `no orchestrator answers for session "${type}" of key "${key}": is one running?`,
          retryable: true,
        });
      const failed = decode(ErrorReply, reply.body);
      if (failed.kind === "ok") throw fromFailure({ retryable: false, ...failed.value.error });
      const answer = decode(Closed, reply.body);
      return { closed: answer.kind === "ok" && answer.value.closed };
    });
  }

  evict(sessionId: string, reason?: string): Promise<void> {
    return this.#giveUp("evict", sessionId, reason);
  }

  /** Like a draining worker: running calls finish, the state is saved if the type supports it (S13). */
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

  /** The bytes that code inside a session stored under a name; undefined if there are none. */
  blob(sessionId: string, name: string): Promise<Uint8Array | undefined> {
    return userFacing(async () => {
      // A blob that is replaced meanwhile is gone: the record has the newer one then.
      for (let attempt = 0; attempt < 3; attempt++) {
        const stored = (await this.#record(sessionId)).blobs?.find((blob) => blob.name === name);
        if (!stored) return undefined;
        const bytes = await this.#parts.bus.blobs.get(stored.key);
        if (bytes) return bytes;
      }
      throw new HoldfastError({
        code: "blob_missing",
        message: `blob ${name} of session ${sessionId} is no longer in the blob store`,
        retryable: true,
      });
    });
  }

  /** The blobs that code inside a session stored under names, the oldest first. */
  blobs(sessionId: string): Promise<BlobInfo[]> {
    return userFacing(async () =>
      ((await this.#record(sessionId)).blobs ?? []).map(({ name, bytes, storedAt }) => ({
        name,
        bytes,
        storedAt,
      })),
    );
  }

  access(sessionId: string): SessionAccess {
    return {
      sessionId,
      send: (name, payload) => this.send(sessionId, name, payload),
      describe: () => this.describe(sessionId),
      blobs: { get: (name) => this.blob(sessionId, name), list: () => this.blobs(sessionId) },
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
      message: `no worker holds session ${sessionId} (${phase})`,
      retryable: true,
    });
  }

  async #post(workerId: string, sessionId: string, work: SessionWork): Promise<void> {
    const { bus, names, runtime } = this.#parts;
    await publishOrThrow(bus, {
      subject: names.sessionWork(workerId, sessionId),
      body: encode(work),
      msgId: `${work.kind}-${sessionId}-${token(runtime.random)}`,
    });
  }
}
