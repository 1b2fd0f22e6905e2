/**
 * I4, I6, I7, I13, LENDER-1: which worker held a session when, whose results count, and how often a session
 * ends.
 */

import type { Attachment, Borrower, EventOf, HistoryEvent } from "../../../schemas/index.ts";
import { holderIn, useOf } from "../../../schemas/index.ts";
import type { HistoryLaw } from "./law.ts";

type Holder = Pick<Attachment, "epoch" | "workerId">;

/** Sessions that an execution begins with: those carried over, and those granted by its parent. */
const broughtAlong = ({ carried, granted }: EventOf<"instance.started">) => [
  ...(carried?.sessions ?? []),
  ...(granted ?? []),
];

export const epochsGrow: HistoryLaw = {
  begin(onViolation) {
    /** Over all executions: neither a lease key nor an epoch is ever used again. */
    const highest = new Map<string, { attachment: number; epoch: number }>();
    const requested = new Map<string, number>();
    return {
      commit(commit) {
        for (const event of commit.events) {
          if (event.kind === "session.requested") {
            const { sessionId, attachment } = event;
            const before = requested.get(sessionId) ?? 0;
            if (attachment <= before)
              onViolation(
                "I6",
                `attachment ${attachment} of session ${sessionId} is asked for after ${before}`,
              );
            requested.set(sessionId, Math.max(before, attachment));
          }
          if (event.kind !== "session.claimed" && event.kind !== "session.activated") continue;
          const { sessionId, on } = event;
          const before = highest.get(sessionId);
          // `claimed` and `activated` name the same holder.
          const same = before?.epoch === on.epoch && before.attachment === on.attachment;
          if (before && !same && (on.epoch <= before.epoch || on.attachment <= before.attachment))
            onViolation(
              "I6",
              `session ${sessionId}: attachment ${on.attachment} with epoch ${on.epoch} follows attachment ${before.attachment} with epoch ${before.epoch}`,
            );
          highest.set(sessionId, { attachment: on.attachment, epoch: on.epoch });
        }
      },
    };
  },
};

export const ownersOnly: HistoryLaw = {
  begin(onViolation) {
    let execution = 0;
    let targets = new Map<number, string>();
    const current = new Map<string, Holder | undefined>();
    return {
      commit(commit, of) {
        if (of !== execution) targets = new Map();
        execution = of;
        for (const event of commit.events) {
          follow(event, current);
          if (event.kind === "activity.scheduled" && event.target.kind === "session")
            targets.set(event.id, event.target.sessionId);
          if (event.kind !== "activity.completed") continue;
          const sessionId = targets.get(event.of);
          if (sessionId === undefined) continue;
          const holder = current.get(sessionId);
          const result = `execution ${of}: event ${event.id}, the result of event ${event.of} on session ${sessionId}`;
          if (!holder) onViolation("I7", `${result}, is accepted while no worker holds it`);
          else if (event.epoch !== holder.epoch)
            onViolation("I4", `${result}, carries epoch ${event.epoch}, but ${holder.epoch} was current`);
          else if (event.workerId !== undefined && event.workerId !== holder.workerId)
            onViolation("I7", `${result}, is from ${event.workerId}, but ${holder.workerId} held it`);
        }
      },
    };
  },
};

function follow(event: HistoryEvent, current: Map<string, Holder | undefined>): void {
  switch (event.kind) {
    case "instance.started":
      for (const { sessionId, phase } of broughtAlong(event)) current.set(sessionId, holderIn(phase));
      return;
    case "session.activated":
      current.set(event.sessionId, event.on);
      return;
    case "pool.lent":
      current.set(event.member.sessionId, holderIn(event.member.phase));
      return;
    case "session.lost":
    case "session.parked":
    case "session.failed":
    case "session.closed":
      current.set(event.sessionId, undefined);
      return;
    default:
  }
}

export const closedOnce: HistoryLaw = {
  begin(onViolation) {
    const over = new Map<string, number>();
    return {
      commit(commit, of) {
        for (const event of commit.events) {
          if (event.kind === "instance.started")
            for (const { sessionId, phase } of broughtAlong(event))
              if (phase.kind !== "closed") over.delete(sessionId);
          if (event.kind === "session.opened") over.delete(event.sessionId);
          if (event.kind === "pool.lent") over.delete(event.member.sessionId);
          if (!event.kind.startsWith("session.") || !("sessionId" in event)) continue;
          const closed = over.get(event.sessionId);
          if (closed !== undefined && lives.has(event.kind))
            onViolation(
              "I13",
              `execution ${of}: session ${event.sessionId} has ${event.kind} as event ${event.id} after its close, event ${closed}`,
            );
          if (event.kind === "session.closed") over.set(event.sessionId, closed ?? event.id);
        }
      },
    };
  },
};

/** Events that must not follow the end of a session. */
const lives = new Set<string>([
  "session.requested",
  "session.claimed",
  "session.activated",
  "session.lost",
  "session.parked",
  "session.lent",
  "session.closed",
]);

export const lentToOne: HistoryLaw = {
  begin(onViolation) {
    /** The number of each lending that is not over; of a session that many share, by borrower. */
    const lent = new Map<string, number>();
    let latest = 0;
    return {
      commit(commit, of) {
        for (const event of commit.events) {
          if (event.kind === "instance.started") {
            lent.clear();
            for (const { sessionId, lending, borrowers = [] } of event.carried?.sessions ?? []) {
              if (lending) lent.set(sessionId, lending.number);
              for (const borrower of borrowers) lent.set(loanOf(sessionId, borrower), latest);
            }
          }
          if (event.kind === "session.returned" && !lent.delete(loanOf(event.sessionId, event.from)))
            onViolation(
              "LENDER-1",
              `execution ${of}: ${event.sessionId} comes back (event ${event.id}) and was not lent`,
            );
          if (event.kind !== "session.lent") continue;
          const { sessionId, lending, refused } = event;
          const loan = loanOf(sessionId, lending.shared && lending.to);
          const before = lent.get(loan);
          if (before !== undefined)
            onViolation(
              "LENDER-1",
              `execution ${of}: ${sessionId} is lent to ${lending.to.instanceId} (event ${event.id}) while lending ${before} is not over`,
            );
          if (lending.number <= latest)
            onViolation(
              "LENDER-1",
              `execution ${of}: lending ${lending.number} comes after lending ${latest}`,
            );
          if (!refused) lent.set(loan, lending.number);
          latest = Math.max(latest, lending.number);
        }
      },
    };
  },
};

/** A session of a key has a loan for each of its borrowers, a member of a pool one at a time. */
const loanOf = (sessionId: string, borrower: Borrower | undefined): string =>
  borrower ? `${sessionId} for ${useOf(borrower)}` : sessionId;
