/** Handles a message that the instance ignores: answers its sender, or dead-letters it. */
import type { Delivery } from "../../../shared/bus/index.ts";
import type { Accepted, InboxMessage, Instance } from "../../../shared/replay/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { LaneWork } from "../lane/lane-work.ts";
import type { Outbox } from "../publishing/publish.ts";
import { type PredecessorCommit, tellsOfDeath } from "../turn/predecessor-commit.ts";
import { answerIgnored } from "./answer-ignored.ts";
import { deadLetterIgnored } from "./dead-letter-ignored.ts";

interface IgnoredMessage {
  message: InboxMessage;
  delivery: Delivery | undefined;
  lane: LaneWork;
}

/**
 * `look`: a new deployment asks to look at the parked instance, whose fault may have been repaired from
 * outside. `owed`: the effects of the last commit may be unpublished.
 */
export async function ignore(
  deps: OrchestratorDeps,
  outbox: Outbox,
  instance: Instance,
  why: Extract<Accepted, { kind: "ignored" }>["why"],
  inherited: PredecessorCommit,
  { message, delivery, lane }: IgnoredMessage,
): Promise<{ look: boolean; owed: boolean }> {
  const { state } = instance;
  await answerIgnored(deps, outbox, state, message, why);
  if (!delivery) return { look: false, owed: false };
  await deadLetterIgnored(deps, state, message, delivery, why);
  if (message.kind !== "wake" || !message.wake) return { look: false, owed: false };
  const { wake } = message;
  // This wake stood for a local activity that runs now, and still stands for it.
  if (state.tasks.get(wake.of)?.target.kind === "local") lane.applied(delivery);
  return { look: wake.of === 0, owed: tellsOfDeath(inherited, instance, wake) };
}
