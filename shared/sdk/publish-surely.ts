/** A publish whose answer did not come is repeated under the same message id: stored once, however often it is sent. */
import type { Bus, Headers } from "../bus/bus.ts";
import { HoldfastError, isFault } from "../errors/index.ts";

export interface SurePublish {
  subject: string;
  body: Uint8Array;
  msgId: string;
  headers?: Headers | undefined;
  schedule?: { at: number; target: string };
}

const attempts = 3;

export async function publishSurely(bus: Bus, message: SurePublish): Promise<{ duplicate: boolean }> {
  const { subject, body, ...options } = message;
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      const outcome = await bus.publish(subject, body, options);
      if (outcome.kind === "stored") return { duplicate: outcome.duplicate };
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
