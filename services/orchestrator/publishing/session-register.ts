/** The register of sessions: who owns an id, who holds it. The watcher's second net and the views read it (S5). */
import type { Failure, SessionRecord, SessionState } from "../../../schemas/index.ts";
import { bucketStream, bucketSubject, leaseKeys } from "../../../shared/bus/index.ts";
import type { InstanceState } from "../../../shared/replay/index.ts";
import { SparseMap } from "../../../shared/runtime/index.ts";
import { place } from "../../../shared/sessions/placement.ts";
import { ownerIn, recordOf } from "../../../shared/sessions/records.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { type Outbox, publishSurely } from "./publish.ts";

interface Known {
  /** Undefined: there is one that nobody can read. It is written over with what the history says (E2). */
  record: SessionRecord | undefined;
  /** As far as it could be told. */
  owner: string | undefined;
  revision: number;
}

export class SessionRegister {
  readonly #deps: EngineDeps;
  readonly #outbox: Outbox;
  readonly #known = new SparseMap<string, Known>();

  constructor(deps: EngineDeps, outbox: Outbox) {
    this.#deps = deps;
    this.#outbox = outbox;
  }

  /** Returns the sessions that may not be claimed: their instance is told why by a report. */
  async write(state: Readonly<InstanceState>, sessionIds: Iterable<string>): Promise<Set<string>> {
    const refused = new Set<string>();
    const writes: Promise<void>[] = [];
    for (const sessionId of sessionIds) {
      const session = state.sessions.get(sessionId);
      if (!session || session.owner !== state.instanceId) continue;
      writes.push(
        this.#write(session).then((verdict) => void (verdict === "refused" && refused.add(sessionId))),
      );
    }
    await Promise.all(writes);
    return refused;
  }

  /** Somebody asked for a look: entries that nobody can read are written anew from the history (E2). */
  async repair(state: Readonly<InstanceState>): Promise<void> {
    for (const session of state.sessions.values()) {
      if (session.owner !== state.instanceId) continue;
      const looked = await this.#deps.registers.sessions.look(session.sessionId, { leader: true });
      if (looked.kind !== "unreadable") continue;
      this.#known.delete(session.sessionId);
      await this.#write(session);
    }
  }

  async #write(session: SessionState): Promise<"registered" | "refused"> {
    const { clock } = this.#deps.runtime;
    const { sessionId } = session;
    for (let attempt = 0; attempt < 5; attempt++) {
      const known =
        this.#known.get(sessionId) ??
        (attempt === 0 && isNew(session) ? undefined : await this.#look(sessionId));
      const theirs = known?.owner === session.owner ? undefined : known?.owner;
      if (known && theirs !== undefined) {
        const verdict = known.record
          ? await this.#judge(session, known.record)
          : await this.#refuse(session, idTaken(session, theirs));
        if (verdict !== "ours") return verdict;
      }
      const record = recordOf(session, theirs === undefined ? known?.record : undefined, clock.now());
      const outcome = known
        ? await this.#deps.registers.sessions.update(sessionId, record, known.revision)
        : await this.#deps.registers.sessions.create(sessionId, record);
      if (outcome.kind === "written") {
        this.#known.set(sessionId, { record, owner: record.instanceId, revision: outcome.revision });
        const spent = known ? 0 : await this.#spentBefore(session);
        if (spent > 0) return this.#goBeyond(session, spent);
        return this.#refuseGoneResource(session);
      }
      this.#known.delete(sessionId);
    }
    throw new Error(`session ${sessionId} could not be registered`);
  }

  /**
   * The register has another instance's session under this id. While that is open, the id is taken. When it is over, the
   * id is free: what its holders still say is fenced, because attachments and epochs only grow.
   */
  async #judge(session: SessionState, theirs: SessionRecord): Promise<"ours" | "registered" | "refused"> {
    // Nothing is asked for: what the register says of the other one stays.
    if (session.phase.kind !== "opening") return "registered";
    if (!isOver(theirs) || !this.#deps.generation.allows(2))
      return this.#refuse(session, idTaken(session, theirs.instanceId, theirs.phase));
    // The one behind its last attachment may still be taken by its holder, coming back after an outage (S14).
    const upTo = theirs.attachment + 1;
    return session.attachments > upTo ? "ours" : this.#goBeyond(session, upTo);
  }

  /** The register has forgotten whoever used this id; the leases have not. Ids the engine made are nobody else's. */
  async #spentBefore({ sessionId, owner, phase }: SessionState): Promise<number> {
    if (sessionId.startsWith(`${owner}-`) || phase.kind !== "opening") return 0;
    const { bus, names } = this.#deps;
    const bucket = names.bucket("leases");
    const stream = bucketStream(bucket);
    const own = bucketSubject(bucket, leaseKeys.session(sessionId, phase.attachment));
    // Nearly always there is none, and that is cheap to know.
    if ((await bus.last(stream, own, { leader: true })) === undefined) return 0;
    let spent = 0;
    const start = bucketSubject(bucket, "").length;
    for await (const { subject } of bus.lastPerSubject(
      stream,
      bucketSubject(bucket, leaseKeys.allOf(sessionId)),
    )) {
      const address = leaseKeys.parseSession(subject.slice(start));
      if (address) spent = Math.max(spent, address.attachment);
    }
    return spent;
  }

  async #goBeyond(session: SessionState, upTo: number): Promise<"refused"> {
    const { sessionId, attachments, owner } = session;
    await publishSurely(
      this.#outbox,
      this.#deps.names.verb(owner, "session"),
      { v: 1, sessionId, attachment: attachments, report: { kind: "spent", upTo } },
      { msgId: `spent-${owner}-${sessionId}-${attachments}-${upTo}` },
    );
    return "refused";
  }

  async #look(sessionId: string): Promise<Known | undefined> {
    const looked = await this.#deps.registers.sessions.look(sessionId, { leader: true });
    if (looked.kind === "none") return undefined;
    const { revision } = looked.entry;
    if (looked.kind === "unreadable")
      return { record: undefined, owner: ownerIn(looked.entry.value), revision };
    const record = looked.entry.value;
    return { record, owner: record.instanceId, revision };
  }

  /** A token names one resource: if it has left, waiting for it is useless. */
  async #refuseGoneResource(session: SessionState): Promise<"registered" | "refused"> {
    const { resourceId } = session.options;
    if (resourceId === undefined || session.phase.kind !== "opening") return "registered";
    const placed = place(this.#deps.workers.workers(), claimFacts(session));
    if (placed.kind !== "none" || placed.why !== "resource_gone") return "registered";
    const error: Failure = {
      code: "session_resource_gone",
      message: `session ${session.sessionId}: ${placed.message}`,
      retryable: false,
      details: { resourceId },
    };
    return this.#refuse(session, error);
  }

  async #refuse(session: SessionState, error: Failure): Promise<"refused"> {
    const { names } = this.#deps;
    const { sessionId, attachments, owner } = session;
    const attachment = Math.max(1, attachments);
    await publishSurely(
      this.#outbox,
      names.verb(owner, "session"),
      { v: 1, sessionId, attachment, report: { kind: "refused", error } },
      { msgId: `refused-${owner}-${sessionId}-${attachment}` },
    );
    return "refused";
  }
}

const isNew = (session: SessionState): boolean =>
  session.attachments <= 1 && session.phase.kind === "opening";

const idTaken = (session: SessionState, owner: string, phase = "unreadable"): Failure => ({
  code: "session_id_taken",
  message: `session id ${session.sessionId} belongs to instance ${owner} (${phase}) until that is closed`,
  retryable: false,
  details: { sessionId: session.sessionId, owner },
});

const isOver = ({ phase }: SessionRecord): boolean =>
  phase === "closed" || phase === "failed" || phase === "lost";

export const claimFacts = (session: SessionState) => ({
  sessionId: session.sessionId,
  type: session.type,
  requires: session.options.requires,
  buildId: session.options.buildId,
  resourceId: session.options.resourceId,
  affinityKey: session.options.affinityKey ?? session.type,
});
