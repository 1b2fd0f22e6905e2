/**
 * Records everything that happens to session leases while it listens (I6, I14, QUOTA-1). The bucket keeps
 * only the last message of each key; for the intervals one must follow the stream from the beginning of the
 * run.
 */
import { LeaseValue } from "../../schemas/index.ts";
import {
  type Bus,
  bucketStream,
  bucketSubject,
  decode,
  headerNames,
  leaseKeys,
  type Stoppable,
  type Subjects,
} from "../bus/index.ts";
import { isExpiry } from "../leases/index.ts";
import type { Closing } from "./fold.ts";
import type { Findings } from "./report.ts";

export interface Holding {
  sessionId: string;
  attachment: number;
  instanceId: string | undefined;
  holder: string;
  /** Revision of the claim that won: the epoch. */
  fromSeq: number;
  lastSeq: number;
  end: { kind: "expired" | "released"; seq: number; at: number } | undefined;
}

interface LeaseChange {
  sessionId: string;
  attachment: number;
  seq: number;
  at: number;
  kind: "held" | "expired" | "released";
  holder: string;
  instanceId?: string | undefined;
}

export class LeaseLog implements AsyncDisposable {
  readonly #holdings = new Map<string, Holding>();
  readonly #wrong: { instanceId: string | undefined; evidence: string }[] = [];
  #tail: Stoppable | undefined;

  static async start({ bus, names }: { bus: Bus; names: Subjects }): Promise<LeaseLog> {
    const log = new LeaseLog();
    const bucket = names.bucket("leases");
    const start = bucketSubject(bucket, "").length;
    log.#tail = await bus.tail(bucketStream(bucket), bucketSubject(bucket, leaseKeys.allSessions), {
      existing: true,
      onMessage: ({ subject, seq, at, headers, body }) => {
        const address = leaseKeys.parseSession(subject.slice(start));
        if (!address) return; // not a session's key
        const kind = isExpiry({ headers })
          ? "expired"
          : headers[headerNames.kvOperation]
            ? "released"
            : "held";
        const value = kind === "held" ? decode(LeaseValue, body) : undefined;
        const held = value?.kind === "ok" ? value.value : undefined;
        log.add({
          ...address,
          seq,
          at,
          kind,
          holder: held?.holder ?? "",
          instanceId: held?.session?.instanceId,
        });
      },
    });
    return log;
  }

  add({ sessionId, attachment, seq, at, kind, holder, instanceId }: LeaseChange): void {
    const key = `${sessionId} ${attachment}`;
    const known = this.#holdings.get(key);
    const end = kind === "held" ? undefined : { kind, seq, at };
    if (!known) {
      this.#holdings.set(key, { sessionId, attachment, instanceId, holder, fromSeq: seq, lastSeq: seq, end });
      return;
    }
    if (known.lastSeq >= seq) return; // delivered again after a reconnect
    known.lastSeq = seq;
    if (end) known.end ??= end;
    else if (known.end)
      this.#violation(known, `attachment ${attachment} of session ${sessionId} was renewed after its end`);
    else if (holder !== known.holder)
      this.#violation(
        known,
        `attachment ${attachment} of session ${sessionId} went from ${known.holder} to ${holder}`,
      );
  }

  get holdings(): Holding[] {
    return [...this.#holdings.values()];
  }

  of(sessionId: string): Holding[] {
    return this.holdings
      .filter((holding) => holding.sessionId === sessionId)
      .sort((a, b) => a.attachment - b.attachment);
  }

  /**
   * The largest number of matching sessions held at the same time, by the order of the lease stream. A holder
   * that attaches to its session again has two leases of it for a moment (S14).
   */
  mostAtOnce(fits: (holding: Holding) => boolean = () => true): number {
    const changes = this.holdings.filter(fits).flatMap(({ sessionId, fromSeq, end }) => [
      { sessionId, seq: fromSeq, by: 1 },
      { sessionId, seq: end?.seq ?? Number.POSITIVE_INFINITY, by: -1 },
    ]);
    const held = new Map<string, number>();
    let most = 0;
    for (const { sessionId, by } of changes.sort((a, b) => a.seq - b.seq)) {
      const leases = (held.get(sessionId) ?? 0) + by;
      if (leases > 0) held.set(sessionId, leases);
      else held.delete(sessionId);
      most = Math.max(most, held.size);
    }
    return most;
  }

  /**
   * I6: the next holder's lease begins after the previous one has ended. A session that was closed ends with
   * its close, and its id may be used again, even if a dead holder's lease lasts longer.
   */
  check(findings: Pick<Findings, "violation">, closings: readonly Closing[] = []): void {
    for (const { instanceId, evidence } of this.#wrong) findings.violation("I6", instanceId, evidence);
    const bySession = new Map<string, Holding[]>();
    for (const holding of this.#holdings.values()) {
      const others = bySession.get(holding.sessionId);
      if (others) others.push(holding);
      else bySession.set(holding.sessionId, [holding]);
    }
    for (const [sessionId, holdings] of bySession) {
      const owners = holdings.sort((a, b) => a.attachment - b.attachment);
      for (const [index, next] of owners.entries()) {
        const before = owners[index - 1];
        // A holder that comes back by itself had given up its earlier attachment, even if the server shows
        // that later (S14).
        if (!before || next.holder === before.holder || next.holder === "" || before.holder === "") continue;
        const closed = closings.some(
          (closing) =>
            closing.sessionId === sessionId &&
            closing.attachment >= before.attachment &&
            closing.attachment < next.attachment,
        );
        if (closed && next.fromSeq > before.fromSeq) continue;
        const pair = `session ${sessionId}: attachment ${before.attachment} of ${before.holder}`;
        if (!before.end || before.end.seq > next.fromSeq)
          findings.violation(
            "I6",
            next.instanceId,
            `${pair} ${before.end ? "ended after" : "has not ended, but"} attachment ${next.attachment} of ${next.holder} began`,
          );
        else if (next.fromSeq <= before.fromSeq)
          findings.violation(
            "I6",
            next.instanceId,
            `${pair} has epoch ${before.fromSeq}, the next one ${next.fromSeq}`,
          );
      }
    }
  }

  /** The violations that `check` finds, one line each. */
  violations(): string[] {
    const lines: string[] = [];
    this.check({
      violation: (law, instanceId, evidence) => void lines.push(`${law} ${instanceId}: ${evidence}`),
    });
    return lines;
  }

  /** I14: a worker held more sessions at once than it accepts. */
  checkCap(max: number, findings: Pick<Findings, "violation">): void {
    for (const holder of new Set(this.holdings.map((holding) => holding.holder))) {
      const most = this.mostAtOnce((holding) => holding.holder === holder);
      if (holder !== "" && most > max)
        findings.violation("I14", undefined, `${holder} held ${most} sessions at a time, its cap is ${max}`);
    }
  }

  #violation({ instanceId }: Holding, evidence: string): void {
    this.#wrong.push({ instanceId, evidence });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tail?.stop();
  }
}
