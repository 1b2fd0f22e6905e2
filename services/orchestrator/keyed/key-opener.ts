/**
 * Finds the holder of the session of a key, and asks the keeper to open the session if no worker holds it. The
 * register only says where to look: the holder itself decides whether it holds the session (S2).
 */
import {
  type HeldRoute,
  type KeyedRoute,
  type KeyedSignal,
  type KeyedSpec,
  keeperOf,
  keyConfigMetadataKey,
  keyedOrchestration,
  poolSignal,
  SessionId,
  type SessionRecord,
} from "../../../schemas/index.ts";
import {
  type Bus,
  encode,
  publishOrThrow,
  type Subjects,
  type TypedBucket,
} from "../../../shared/bus/index.ts";
import type { Capabilities } from "../../../shared/capabilities/index.ts";
import { configConflict } from "../../../shared/definitions/index.ts";
import { fromFailure } from "../../../shared/errors/index.ts";
import { type Runtime, sleep, token } from "../../../shared/runtime/index.ts";
import { engineReport } from "../publishing/effect-messages.ts";

export interface KeyOpenerParts {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
  readonly sessions: TypedBucket<SessionRecord>;
  readonly capabilities: Capabilities;
}

/** An opening takes a few milliseconds, or as long as `init`. */
const firstLookMs = 2;
const slowestLookMs = 250;
/** After this long the keeper is asked again: the first request may have met a session that was being closed. */
const askAgainMs = 1_000;

export class KeyOpener {
  readonly #parts: KeyOpenerParts;
  /** Keepers known to be started. */
  readonly #keepers = new Set<string>();
  /** Concurrent requests for one key share one opening. */
  readonly #underWay = new Map<string, Promise<KeyedRoute>>();

  constructor(parts: KeyOpenerParts) {
    this.#parts = parts;
  }

  /** `check` runs before a session is opened. */
  async open(
    spec: KeyedSpec,
    { not, waitMs, check }: { not?: number | undefined; waitMs: number; check: () => void },
  ): Promise<KeyedRoute> {
    const record = (await this.#look(spec))?.value;
    refuseOtherConfig(spec, record);
    const held = record && routeOf(record, not);
    if (held) return held;
    check();
    const key = `${spec.sessionId} ${not ?? ""} ${spec.configDigest}`;
    const known = this.#underWay.get(key);
    if (known) return known;
    const opening = this.#open(spec, not, waitMs).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, opening);
    return opening;
  }

  async close(sessionId: string, reason: string | undefined): Promise<void> {
    const id = SessionId.parse(sessionId);
    await this.#signalKeeper({ kind: "close", sessionId: id, ...(reason !== undefined && { reason }) }, id);
  }

  async #open(spec: KeyedSpec, not: number | undefined, waitMs: number): Promise<KeyedRoute> {
    const { clock } = this.#parts.runtime;
    const until = clock.monotonic() + waitMs;
    let askedAt = Number.NEGATIVE_INFINITY;
    let before = -1;
    for (let lookMs = firstLookMs; ; lookMs = Math.min(slowestLookMs, lookMs * 2)) {
      const entry = await this.#look(spec);
      const record = entry?.value;
      refuseOtherConfig(spec, record);
      const held = record && routeOf(record, not);
      if (held) return held;
      // The session failed after this request began: the failure is the answer.
      if (record?.phase === "failed" && before >= 0 && entry && entry.revision > before)
        throw fromFailure(
          record.error ?? { code: "session_init_failed", message: "it failed", retryable: false },
        );
      if (before < 0) before = entry?.revision ?? 0;
      if (clock.monotonic() - askedAt >= askAgainMs && (await this.#ask(spec, record)))
        askedAt = clock.monotonic();
      if (clock.monotonic() >= until) return { state: "opening", sessionId: spec.sessionId };
      await sleep(clock, lookMs);
    }
  }

  /** Returns false if the keeper is already opening the session. */
  async #ask(spec: KeyedSpec, record: SessionRecord | undefined): Promise<boolean> {
    switch (record?.phase) {
      case undefined:
      case "closed":
      case "failed":
      case "lost":
        await this.#signalKeeper({ kind: "open", spec }, spec.sessionId);
        return true;
      case "parked": {
        const { sessionId, attachment, instanceId } = record;
        const { bus, names, capabilities } = this.#parts;
        const wanted = { sessionId, attachment: Math.max(1, attachment), report: { kind: "wanted" } };
        const report = engineReport(capabilities, instanceId, wanted);
        await publishOrThrow(bus, {
          subject: names.verb(instanceId, "session"),
          body: encode(report),
          msgId: `wanted-${sessionId}-${attachment}-${token(this.#parts.runtime.random)}`,
        });
        return true;
      }
      default:
        return false;
    }
  }

  async #signalKeeper(signal: KeyedSignal, sessionId: string): Promise<void> {
    const { bus, names, runtime } = this.#parts;
    const keeper = keeperOf(sessionId);
    if (!this.#keepers.has(keeper)) {
      const subject = names.start(keeper, keyedOrchestration);
      await publishOrThrow(bus, {
        subject,
        body: encode({}),
        msgId: `start-${keeper}-${token(runtime.random)}`,
      });
      this.#keepers.add(keeper);
    }
    await publishOrThrow(bus, {
      subject: names.signal(keeper, poolSignal),
      body: encode(signal),
      msgId: `${signal.kind}-${sessionId}-${token(runtime.random)}`,
    });
  }

  #look({ sessionId }: KeyedSpec) {
    return this.#parts.sessions.get(sessionId, { leader: true });
  }
}

/** Undefined if no holder is known except the one to avoid. */
function routeOf(record: SessionRecord, not: number | undefined): HeldRoute | undefined {
  const { phase, workerId, epoch, sessionId, metadata, onLost = "fail" } = record;
  if (phase !== "active" || workerId === undefined || epoch === undefined || epoch === not) return undefined;
  const configDigest = metadata[keyConfigMetadataKey] ?? "";
  return { state: "held", sessionId, workerId, epoch: epoch as HeldRoute["epoch"], configDigest, onLost };
}

const over: ReadonlySet<string> = new Set(["closed", "failed", "lost"]);

function refuseOtherConfig({ type, key, configDigest }: KeyedSpec, record: SessionRecord | undefined): void {
  if (configDigest === "" || !record || over.has(record.phase)) return;
  if (record.metadata[keyConfigMetadataKey] !== configDigest) throw configConflict(type, key);
}
