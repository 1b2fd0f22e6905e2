/**
 * All that ever happened to the leases of sessions, as the lease stream told it (I6, I7). The bucket keeps only the last
 * word on each key, so it is listened to from the beginning.
 */
import { expect } from "vitest";
import { type Commit, type HistoryEvent, LeaseValue } from "../../schemas/index.ts";
import { bucketStream, bucketSubject, decode, leaseKeys, type Stoppable } from "../../shared/bus/index.ts";
import { isExpiry } from "../../shared/leases/index.ts";
import type { Stack } from "./stack.ts";

interface Holding {
  sessionId: string;
  attachment: number;
  holder: string;
  /** Revision of the claim that won: the epoch. */
  fromSeq: number;
  lastSeq: number;
  end: { kind: "expired" | "released"; seq: number; at: number } | undefined;
}

export class LeaseLog implements AsyncDisposable {
  readonly holdings: Holding[] = [];
  readonly #tail: Stoppable;

  private constructor(tail: Stoppable) {
    this.#tail = tail;
  }

  static async start({ bus, names }: Pick<Stack, "bus" | "names">): Promise<LeaseLog> {
    const bucket = names.bucket("leases");
    const start = bucketSubject(bucket, "").length;
    let add: (message: Parameters<LeaseLog["add"]>[0]) => void = () => undefined;
    const tail = await bus.tail(bucketStream(bucket), bucketSubject(bucket, leaseKeys.allSessions), {
      existing: true,
      onMessage: ({ subject, seq, at, headers, body }) => {
        const address = leaseKeys.parseSession(subject.slice(start));
        if (!address) throw new Error(`not a session's lease: ${subject}`);
        const kind = isExpiry({ headers }) ? "expired" : headers["KV-Operation"] ? "released" : "held";
        const value = kind === "held" ? decode(LeaseValue, body) : undefined;
        const holder = value?.kind === "ok" ? value.value.holder : "";
        add({ ...address, seq, at, kind, holder });
      },
    });
    const log = new LeaseLog(tail);
    add = (message) => log.add(message);
    return log;
  }

  add(message: {
    sessionId: string;
    attachment: number;
    seq: number;
    at: number;
    kind: "held" | "expired" | "released";
    holder: string;
  }): void {
    const { sessionId, attachment, seq, at, kind, holder } = message;
    const known = this.holdings.find(
      (holding) => holding.sessionId === sessionId && holding.attachment === attachment,
    );
    if (!known) {
      const end = kind === "held" ? undefined : { kind, seq, at };
      this.holdings.push({ sessionId, attachment, holder, fromSeq: seq, lastSeq: seq, end });
      return;
    }
    if (known.lastSeq >= seq) return; // told again after a reconnect
    known.lastSeq = seq;
    if (kind !== "held") known.end ??= { kind, seq, at };
    else {
      expect(known.end, `${sessionId}.${attachment} was renewed after its end`).toBeUndefined();
      expect(holder, `holder of ${sessionId}.${attachment}`).toBe(known.holder);
    }
  }

  of(sessionId: string): Holding[] {
    return this.holdings
      .filter((holding) => holding.sessionId === sessionId)
      .sort((a, b) => a.attachment - b.attachment);
  }

  /** I6: who comes next begins after the one before has ended, and with a higher epoch. */
  checkOwners(): void {
    for (const sessionId of new Set(this.holdings.map((holding) => holding.sessionId))) {
      const owners = this.of(sessionId);
      for (const [index, next] of owners.entries()) {
        const before = owners[index - 1];
        if (!before) continue;
        const pair = `${sessionId} attachments ${before.attachment} and ${next.attachment}`;
        expect(before.end, `${pair}: the first has ended`).toBeDefined();
        // An owner that comes back by itself has given up the right before, though the server may say so later (S14).
        if (next.holder === before.holder) continue;
        expect(next.fromSeq, `${pair}: in order`).toBeGreaterThan(
          before.end?.seq ?? Number.POSITIVE_INFINITY,
        );
      }
    }
  }

  /** Leases held at the same time among those that fit, from the order of the lease stream. */
  mostAtOnce(fits: (holding: Holding) => boolean = () => true): number {
    const changes = this.holdings.filter(fits).flatMap(({ fromSeq, end }) => [
      { seq: fromSeq, by: 1 },
      { seq: end?.seq ?? Number.POSITIVE_INFINITY, by: -1 },
    ]);
    let now = 0;
    let most = 0;
    for (const { by } of changes.sort((a, b) => a.seq - b.seq)) {
      now += by;
      most = Math.max(most, now);
    }
    return most;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tail.stop();
  }
}

/** I4, I7 from a history alone: epochs grow, and every result on a session carries the epoch that was current then. */
export function checkSessionEvents(commits: readonly Commit[]): void {
  const executions = new Map<number, HistoryEvent[]>();
  for (const { execution, events } of commits) {
    executions.set(execution, [...(executions.get(execution) ?? []), ...events]);
  }
  const epochs = new Map<string, number>();
  const current = new Map<string, number>();
  for (const events of executions.values()) {
    const targets = new Map<number, string>();
    for (const event of events) {
      switch (event.kind) {
        case "activity.scheduled":
          if (event.target.kind === "session") targets.set(event.id, event.target.sessionId);
          break;
        case "session.claimed":
        case "session.activated": {
          const { sessionId, on } = event;
          const last = epochs.get(sessionId) ?? 0;
          if (on.epoch !== last) expect(on.epoch, `epoch of ${sessionId}`).toBeGreaterThan(last);
          epochs.set(sessionId, on.epoch);
          if (event.kind === "session.activated") current.set(sessionId, on.epoch);
          break;
        }
        case "session.lost":
        case "session.parked":
        case "session.closed":
        case "session.failed":
          current.delete(event.sessionId);
          break;
        case "activity.completed": {
          const sessionId = targets.get(event.of);
          if (sessionId === undefined) break;
          expect(event.epoch, `epoch of the result of ${event.of}`).toBe(current.get(sessionId));
          break;
        }
        default:
      }
    }
  }
}
