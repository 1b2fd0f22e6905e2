/** Publishes until the server answers, each time under the same message id: the message is stored once. */
import { type Bus, type Headers, isThere, type Original, type Schedule } from "../bus/index.ts";
import { HoldfastError, isFault } from "../errors/index.ts";
import { type Random, token } from "../runtime/index.ts";

export interface SurePublish {
  subject: string;
  body: Uint8Array;
  msgId: string;
  headers?: Headers | undefined;
  schedule?: Schedule;
}

const attempts = 3;

/**
 * For message ids that other clients can guess: `original` says where to look before a duplicate answer is
 * believed (SEC-2).
 */
export async function publishSurely(
  bus: Bus,
  message: SurePublish,
  original?: Original & { random: Random },
): Promise<{ duplicate: boolean }> {
  const { duplicate, seq } = await publishOnce(bus, message);
  if (!duplicate || !original || (await isThere(bus, original, seq))) return { duplicate };
  await publishOnce(bus, { ...message, msgId: `${message.msgId}-${token(original.random)}` });
  return { duplicate };
}

async function publishOnce(bus: Bus, message: SurePublish): Promise<{ duplicate: boolean; seq: number }> {
  const { subject, body, ...options } = message;
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      const outcome = await bus.publish(subject, body, options);
      if (outcome.kind === "stored") return { duplicate: outcome.duplicate, seq: outcome.seq };
    } catch (error) {
      // A cluster elects new leaders within some seconds, longer than one try may take.
      const electing = isFault(error, "transient") && error.code === "no_stream" && bus.clustered();
      if (!electing || attempt === attempts) throw error;
    }
  }
  throw new HoldfastError({
    code: "outcome_unknown",
    message: `NATS did not confirm the message on ${subject}: it may have been accepted`,
    retryable: true,
  });
}
