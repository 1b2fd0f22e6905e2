/** Answers the senders of messages that the instance ignores, so that no sender waits for ever. */
import type { Attachment, Follower, Lending, PoolSignal } from "../../../schemas/index.ts";
import { keeperOf, poolSignal, useOf } from "../../../schemas/index.ts";
import { encode, type Subjects } from "../../../shared/bus/index.ts";
import {
  type InboxMessage,
  type InstanceState,
  isEnded,
  isSameParent,
} from "../../../shared/replay/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { type Outbox, publishEffect } from "../publishing/publish.ts";
import { reportEnd } from "../publishing/report-end.ts";

export async function answerIgnored(
  { bus, names, runtime }: EngineDeps,
  outbox: Outbox,
  state: Readonly<InstanceState>,
  message: InboxMessage,
  why: string,
): Promise<void> {
  const { instanceId } = state;
  switch (message.kind) {
    case "activity": {
      const { of, attempt, epoch } = message.report;
      if (why === "fenced" && epoch !== undefined)
        runtime.announce({ kind: "completion.fenced", instanceId, of, epoch });
      else runtime.announce({ kind: "completion.late", instanceId, of, attempt });
      return;
    }
    case "session": {
      // A worker claimed a session that no instance wants any more: the worker must let it go (S9).
      const { report, sessionId, owner } = message.report;
      if (report.kind === "lent") {
        const { lending } = report.session;
        if (lending && why !== "repeated") await refuseMember(names, outbox, sessionId, lending);
        return;
      }
      // A message from the session's owner says nothing about its holder.
      if (owner !== undefined) return;
      const on = report.kind === "claimed" || report.kind === "activated" ? report.on : undefined;
      if (on && !holds(state, sessionId, on)) {
        await publishEffect(
          outbox,
          names.sessionWork(on.workerId, sessionId),
          { v: 1, kind: "close", epoch: on.epoch, reason: "no longer wanted" },
          { msgId: `close-${sessionId}-${on.epoch}` },
        );
      }
      return;
    }
    case "start": {
      // The client that starts the instance again may be waiting for an end that was announced long ago.
      if (isEnded(state)) bus.send(names.notice(instanceId, "ended"), encode({ status: state.status }));
      // The id of a child was taken by another instance: its parent would wait for ever. An earlier execution
      // of the same parent counts as another one: the same code asks again with the same event.
      const { parent, follower } = message;
      if (follower) await answerFollower(names, outbox, state, follower);
      if (!parent || isSameParent(state.parent, parent)) return;
      await publishEffect(
        outbox,
        names.verb(parent.instanceId, "child"),
        {
          v: 1,
          execution: parent.execution,
          of: parent.of,
          result: {
            kind: "failed",
            error: {
              code: "instance_exists",
              message: `instance ${instanceId} exists already`,
              retryable: false,
            },
          },
        },
        { msgId: `exists-${parent.instanceId}-${parent.execution}-${parent.of}` },
      );
      return;
    }
    default:
      return;
  }
}

/**
 * A follower waits for the end of an instance that it starts. Here the instance has ended already, or another
 * one has the id.
 */
async function answerFollower(
  names: Subjects,
  outbox: Outbox,
  state: Readonly<InstanceState>,
  follower: Follower,
): Promise<void> {
  const { instanceId, status } = state;
  const own = state.follower?.instanceId === follower.instanceId;
  if (own && !isEnded(state)) return; // the follower gets the end when the instance ends
  const end = { follower, instanceId, status: own ? status : "taken" };
  await reportEnd(names, outbox, end, `again-${instanceId}-${follower.instanceId}`);
}

/**
 * Refuses a member that was lent to a use that is over: the borrower has left, or the lender learned of the
 * borrower too late.
 */
function refuseMember(
  names: Subjects,
  outbox: Outbox,
  sessionId: string,
  { poolId, number, to }: Lending,
): Promise<unknown> {
  const signal: PoolSignal = { kind: "leave", user: useOf(to) };
  return publishEffect(outbox, names.signal(keeperOf(poolId), poolSignal), signal, {
    msgId: `unwanted-${sessionId}-${number}`,
  });
}

function holds(state: Readonly<InstanceState>, sessionId: string, on: Attachment): boolean {
  const phase = state.sessions.get(sessionId)?.phase;
  return phase !== undefined && "on" in phase && phase.kind !== "lost" && phase.on?.epoch === on.epoch;
}
