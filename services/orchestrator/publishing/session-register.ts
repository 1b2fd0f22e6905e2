/**
 * Writes the register of sessions: which instance owns an id, which worker holds it. The watcher's reconciler
 * and the views read it (S5).
 */
import type { Attachment, Failure, SessionRecord, SessionState } from "../../../schemas/index.ts";
import { bucketStream, bucketSubject, leaseKeys } from "../../../shared/bus/index.ts";
import { derivedCapability } from "../../../shared/capabilities/index.ts";
import type { InstanceState } from "../../../shared/replay/index.ts";
import { SparseMap } from "../../../shared/runtime/index.ts";
import { isMarkedOver, ownerIn, place, recordOf } from "../../../shared/sessions/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { engineReport } from "./effect-messages.ts";
import { type Outbox, publishEffect } from "./publish.ts";

interface Known {
  /** Undefined if the entry cannot be read; it is overwritten with what the history says (E2). */
  record: SessionRecord | undefined;
  /** The owning instance, as far as it could be read. */
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

  /** Returns the sessions that may not be claimed; their instance gets a report with the reason. */
  async write(
    state: Readonly<InstanceState>,
    sessions: Iterable<readonly [sessionId: string, held: Attachment | undefined]>,
  ): Promise<Set<string>> {
    const refused = new Set<string>();
    const writes: Promise<void>[] = [];
    for (const [sessionId, held] of sessions) {
      const session = state.sessions.get(sessionId);
      if (!session || session.owner !== state.instanceId) continue;
      writes.push(
        this.#write(session, held).then((verdict) => void (verdict === "refused" && refused.add(sessionId))),
      );
    }
    await Promise.all(writes);
    return refused;
  }

  /** Called for a look at the instance: rewrites unreadable entries from the history (E2). */
  async repair(state: Readonly<InstanceState>): Promise<void> {
    for (const session of state.sessions.values()) {
      if (session.owner !== state.instanceId) continue;
      const looked = await this.#deps.registers.sessions.look(session.sessionId, { leader: true });
      if (looked.kind !== "unreadable") continue;
      this.#known.delete(session.sessionId);
      await this.#write(session);
    }
  }

  /**
   * `held`: the holder of a session that was claimed in this turn, even if the session is closed again at its
   * end.
   */
  async #write(newest: SessionState, held?: Attachment): Promise<"registered" | "refused"> {
    const session = this.#deps.generation.allows(2)
      ? newest
      : { ...newest, inits: undefined, rebuilds: undefined, blobs: undefined };
    const { clock } = this.#deps.runtime;
    const { sessionId } = session;
    let wasThere = isOf(this.#known.get(sessionId), session);
    for (let attempt = 0; attempt < 5; attempt++) {
      const known =
        this.#known.get(sessionId) ??
        (attempt === 0 && isNew(session) ? undefined : await this.#look(sessionId));
      // Only entries of sessions that are over are removed: another owner has closed this one meanwhile.
      if (!known && wasThere) return "registered";
      const theirs = known?.owner === session.owner ? undefined : known?.owner;
      if (known && theirs !== undefined) {
        const verdict = known.record
          ? await this.#judge(session, known.record)
          : await this.#refuse(session, idTaken(session, theirs));
        if (verdict !== "ours") return verdict;
      }
      // An owner that was cut off while it wrote must not overwrite what its successor has written since.
      if (known?.record && theirs === undefined && isFurther(known.record, session)) return "registered";
      const now = clock.now();
      const previous = theirs === undefined ? known?.record : undefined;
      const before = held && recordOf({ ...session, phase: claimedBy(held, now) }, previous, now);
      const record = { ...recordOf(session, before ?? previous, now), ...this.#forItsLoss(session) };
      const outcome = known
        ? await this.#deps.registers.sessions.update(sessionId, record, known.revision)
        : await this.#deps.registers.sessions.create(sessionId, record, {
            staysDeleted: (marker) => {
              wasThere = isMarkedOver(marker, record);
              return wasThere;
            },
          });
      if (outcome.kind === "written") {
        this.#known.set(sessionId, { record, owner: record.instanceId, revision: outcome.revision });
        const spent = known ? spentBy(previous, session) : await this.#spentBefore(session);
        if (spent > 0) return this.#goBeyond(session, spent);
        return this.#refuseGoneResource(session);
      }
      wasThere ||= isOf(known, session);
      this.#known.delete(sessionId);
    }
    throw new Error(`session ${sessionId} could not be registered`);
  }

  /** Lets the watcher report the loss of this attachment (C1). */
  #forItsLoss({ sessionId, attachments, owner }: SessionState): Pick<SessionRecord, "lossCapability"> {
    const address = { instanceId: owner, sessionId, attachment: Math.max(1, attachments) };
    const capability = this.#deps.capabilities.ofSession(address);
    return capability === undefined ? {} : { lossCapability: derivedCapability(capability, "lost") };
  }

  /**
   * Decides when the register holds another instance's session under this id. While that session is open, the
   * id is taken. When it is over, the id is free: messages of its former holders are fenced, because
   * attachments and epochs only grow.
   */
  async #judge(session: SessionState, theirs: SessionRecord): Promise<"ours" | "registered" | "refused"> {
    // This session does not ask to be claimed: the other instance's entry stays.
    if (session.phase.kind !== "opening") return "registered";
    if (!isOver(theirs) || !this.#deps.generation.allows(2))
      return this.#refuse(session, idTaken(session, theirs.instanceId, theirs.phase));
    // The former holder may still take the attachment after its last one, when it comes back after an outage
    // (S14).
    const upTo = theirs.attachment + 1;
    return session.attachments > upTo ? "ours" : this.#goBeyond(session, upTo);
  }

  /**
   * The highest attachment used under this id by an instance that the register has forgotten; the leases
   * still show it. Ids made by the engine have no other user.
   */
  async #spentBefore({ sessionId, owner, phase }: SessionState): Promise<number> {
    if (sessionId.startsWith(`${owner}-`) || phase.kind !== "opening") return 0;
    const { bus, names } = this.#deps;
    const bucket = names.bucket("leases");
    const stream = bucketStream(bucket);
    const own = bucketSubject(bucket, leaseKeys.session(sessionId, phase.attachment));
    // Nearly always there is no lease, and that is cheap to find out.
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
    await publishEffect(
      this.#outbox,
      this.#deps.names.verb(owner, "session"),
      engineReport(this.#deps.capabilities, owner, {
        ...{ sessionId, attachment: attachments, report: { kind: "spent", upTo } },
      }),
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

  /** A session token names one resource: if that resource has left, waiting for it is useless. */
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
    await publishEffect(
      this.#outbox,
      names.verb(owner, "session"),
      engineReport(this.#deps.capabilities, owner, {
        sessionId,
        attachment,
        report: { kind: "refused", error },
      }),
      { msgId: `refused-${owner}-${sessionId}-${attachment}` },
    );
    return "refused";
  }
}

const ranks: Record<SessionRecord["phase"], number> = {
  opening: 1,
  claimed: 2,
  rebuilding: 3,
  active: 3,
  parked: 4,
  lost: 4,
  failed: 5,
  closed: 5,
};

/** True if the entry is this session's, not that of an earlier one of its id. */
const isOf = (known: Known | undefined, { owner, openedAt }: SessionState): boolean =>
  known?.record !== undefined && known.owner === owner && known.record.openedAt >= openedAt;

/** True if the register's entry is further along in the same session than this state is. */
function isFurther(known: SessionRecord, { attachments, openedAt, phase }: SessionState): boolean {
  if (known.openedAt !== openedAt) return known.openedAt > openedAt;
  return known.attachment === attachments
    ? ranks[known.phase] > ranks[phase.kind]
    : known.attachment > attachments;
}

/** The attachments of an earlier session of this id that the instance no longer remembers. */
const spentBy = (
  earlier: SessionRecord | undefined,
  { attachments, openedAt, phase }: SessionState,
): number =>
  earlier && phase.kind === "opening" && earlier.openedAt < openedAt && attachments <= earlier.attachment
    ? earlier.attachment
    : 0;

const claimedBy = (on: Attachment, deadlineAt: number): SessionState["phase"] => ({
  kind: "claimed",
  on,
  deadlineAt,
});

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
