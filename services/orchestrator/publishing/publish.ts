/** Publishing that does not give up: an effect of a committed turn must get out (T2). */
import { type Bus, encode, type PublishOptions } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { jittered, type Runtime, sleep } from "../../../shared/runtime/index.ts";

export interface Outbox {
  bus: Bus;
  runtime: Runtime;
  /** Aborts when the partition is lost: the next owner publishes it again. */
  signal: AbortSignal;
}

const empty = new Uint8Array(0);

/** Returns the sequence, or undefined when told to stop. `msgId` makes every repetition harmless. */
export async function publishSurely(
  { bus, runtime, signal }: Outbox,
  subject: string,
  value: unknown,
  options: PublishOptions & { msgId: string },
): Promise<number | undefined> {
  const body = value instanceof Uint8Array ? value : value === undefined ? empty : encode(value);
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      const outcome = await bus.publish(subject, body, options);
      if (outcome.kind === "stored") return outcome.seq;
    } catch (error) {
      if (!isFault(error, "transient")) throw error;
      runtime.announce({ kind: "fault", where: "effects", code: error.code, message: error.message });
    }
    await sleep(runtime.clock, jittered(Math.min(2000, 50 * 2 ** attempt), runtime.random), signal);
  }
  return undefined;
}
