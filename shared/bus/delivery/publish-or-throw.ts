/**
 * Publishes a message for a caller that waits: a few tries under one message id, so the message is stored
 * once, then an error that says the outcome is unknown (BUS-1).
 */
import { HoldfastError, isFault } from "../../errors/index.ts";
import type { Random } from "../../runtime/index.ts";
import type { Bus, Headers, Schedule } from "../bus.ts";
import { type Original, publishAnew } from "./publish-anew.ts";

interface CallersMessage {
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
export async function publishOrThrow(
  bus: Bus,
  { subject, body, ...options }: CallersMessage,
  original?: Original & { random: Random },
): Promise<{ seq: number; duplicate: boolean }> {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      const outcome = original
        ? await publishAnew(bus, original.random, subject, body, { ...options, original })
        : await bus.publish(subject, body, options);
      if (outcome.kind === "stored") return { seq: outcome.seq, duplicate: outcome.duplicate };
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
