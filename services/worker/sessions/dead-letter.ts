/** Messages no worker can read are set aside with their reason: they never come back, and nothing is lost silently. */
import type { DeadLetter } from "../../../schemas/index.ts";
import { type Delivery, encode } from "../../../shared/bus/index.ts";
import { toFailure } from "../../../shared/errors/index.ts";
import type { SessionDeps } from "./session-deps.ts";

/** Acknowledges only what is safely in `DEAD`; otherwise the message comes again. */
export async function deadLetter(
  { bus, names, runtime }: Pick<SessionDeps, "bus" | "names" | "runtime">,
  delivery: Delivery,
  what: "claim" | "session",
  reason: { code: string; message: string },
): Promise<void> {
  const id = delivery.subject.split(".").at(-1) ?? "unknown";
  const { subject, headers, body, seq } = delivery;
  const at = runtime.clock.now();
  const letter: DeadLetter = {
    ...{ v: 1, what, id, subject, reason, at },
    headers: { ...headers },
    body: Buffer.from(body).toString("base64"),
  };
  try {
    const outcome = await bus.publish(names.dead(what, id), encode(letter), { msgId: `dead-${what}-${seq}` });
    if (outcome.kind !== "stored") return delivery.nak(1000);
    delivery.ack();
    runtime.announce({ kind: "dead.lettered", what, id, subject, ...reason });
  } catch (error) {
    const { code, message } = toFailure(error);
    runtime.announce({ kind: "fault", where: `dead letter of ${subject}`, code, message, error });
    delivery.nak(1000);
  }
}
