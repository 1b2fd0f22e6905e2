/**
 * Publishes a message until the server confirms that it is stored. Unanswered tries are repeated under the
 * same message id, so the stream holds one message (BUS-1).
 */
import { type Backoff, backoffMs, jittered, type Runtime, sleep } from "../../runtime/index.ts";
import type { Bus, PublishOptions, PublishOutcome } from "../bus.ts";
import { type Original, publishAnew } from "./publish-anew.ts";

interface UntilStored {
  bus: Bus;
  runtime: Pick<Runtime, "clock" | "random">;
  backoff: Backoff;
  /** Called before every try: false ends the tries. */
  mayTry: () => boolean;
  /** Aborting it ends the wait for the next try. */
  signal?: AbortSignal | undefined;
  /** Called after a failed try. If it throws, the tries end with that error. */
  onFault: (error: unknown) => void;
}

/** `original`: where to look for the message before a duplicate answer is believed (SEC-2). */
type StoredOnce = PublishOptions & { msgId: string; original?: Original | "unseen" | undefined };

/** Undefined if the tries ended before the message was stored. */
export async function publishUntilStored(
  { bus, runtime, backoff, mayTry, signal, onFault }: UntilStored,
  subject: string,
  body: Uint8Array,
  { original, ...options }: StoredOnce,
): Promise<Extract<PublishOutcome, { kind: "stored" }> | undefined> {
  for (let tried = 1; mayTry(); tried++) {
    try {
      const outcome = original
        ? await publishAnew(bus, runtime.random, subject, body, {
            ...options,
            ...(original === "unseen" ? {} : { original }),
          })
        : await bus.publish(subject, body, options);
      if (outcome.kind === "stored") return outcome;
    } catch (error) {
      onFault(error);
    }
    await sleep(runtime.clock, jittered(backoffMs(backoff, tried), runtime.random), signal);
  }
  return undefined;
}
