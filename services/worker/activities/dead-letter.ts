/** What cannot be worked on is set aside with its reason, then acknowledged: it never blocks those behind it. */
import type { DeadLetter } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/bus.ts";
import type { WorkerDeps } from "../deps.ts";

/** Acknowledges only what is safely in `DEAD`; otherwise the message comes again. */
export async function deadLetter(
  deps: Pick<WorkerDeps, "bus" | "names" | "runtime">,
  message: Delivery,
  id: string,
  reason: { code: string; message: string },
): Promise<void> {
  const { bus, names, runtime } = deps;
  const letter: DeadLetter = {
    v: 1,
    what: "activity",
    id,
    subject: message.subject,
    reason,
    at: runtime.clock.now(),
    headers: { ...message.headers },
    body: Buffer.from(message.body).toString("base64"),
  };
  const body = Buffer.from(JSON.stringify(letter));
  const outcome = await bus
    .publish(names.dead("activity", id), body, { msgId: `dead-activity-${message.seq}` })
    .catch((error: unknown) => {
      runtime.announce({
        kind: "fault",
        where: "worker.dead",
        code: "dead_letter",
        message: String(error),
        error,
      });
      return { kind: "unknown" as const };
    });
  if (outcome.kind !== "stored") return message.nak(1000);
  message.ack();
  runtime.announce({ kind: "dead.lettered", what: "activity", id, subject: message.subject, ...reason });
}
