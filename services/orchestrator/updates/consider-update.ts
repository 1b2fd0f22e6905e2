/** Asks an instance's code whether it accepts an update, and answers the client if it does not (Q2). */
import { type Delivery, encode } from "../../../shared/bus/index.ts";
import type { Considered, InboxMessage, Instance, Turn, UpdateRecord } from "../../../shared/replay/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { EarlierIds } from "../turn/earlier-ids.ts";
import { knownAnswer, refusedAnswer } from "./update-answer.ts";

export type Update = Extract<InboxMessage, { kind: "update" }>;

/** `known`: the update was sent before, and is recorded. */
type Judged = Considered | { kind: "known"; record: UpdateRecord };

export async function considerUpdate(
  instance: Instance,
  earlier: EarlierIds,
  update: Update,
): Promise<Judged> {
  return (await earlier.has(update, instance.state))
    ? { kind: "known", record: { kind: "earlier", of: 0 } }
    : instance.consider(update);
}

export async function answerUpdate(
  deps: OrchestratorDeps,
  instanceId: string,
  { updateId }: Update,
  considered: Exclude<Judged, { kind: "acceptable" }>,
  facts: Turn["events"],
  delivery: Delivery | undefined,
): Promise<void> {
  // The update was sent twice and is not recorded yet: it is answered after the commit (T2).
  if (considered.kind === "known" && facts.some(({ id }) => id === considered.record.of)) return;
  const answer =
    considered.kind === "known"
      ? await knownAnswer(deps, instanceId, updateId, considered.record)
      : refusedAnswer(updateId, considered);
  // Send the refusal only when the message cannot be redelivered: a later owner might accept it.
  const isSettled = considered.kind === "known" || !delivery || (await delivery.ackSync());
  if (isSettled) deps.bus.send(deps.names.answer(instanceId, updateId), encode(answer));
}
