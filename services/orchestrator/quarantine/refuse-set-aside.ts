/** Answers clients that wait for an instance whose turns fail: no other answer will come. */
import { encode } from "../../../shared/bus/index.ts";
import type { Fault } from "../../../shared/errors/index.ts";
import type { Asked } from "../../../shared/replay/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { Mailbox } from "../mailbox.ts";
import type { Question } from "../queries/queries.ts";
import { refusedAnswer } from "../updates/update-answer.ts";

export async function refuseSetAside(
  { bus, names }: OrchestratorDeps,
  instanceId: string,
  { code, message }: Fault,
  questions: readonly Question[],
  mailbox: Mailbox,
): Promise<void> {
  const refused: Extract<Asked, { kind: "refused" }> = {
    kind: "refused",
    code: "instance_parked",
    message: `its turns fail: ${message}`,
    details: { code },
    spoiled: false,
  };
  for (const { answer } of questions) answer(refused);
  for (const { updateId, delivery } of mailbox.popUpdates()) {
    mailbox.forget(delivery);
    if (!(await delivery.ackSync())) continue;
    bus.send(names.answer(instanceId, updateId), encode(refusedAnswer(updateId, refused)));
  }
}
