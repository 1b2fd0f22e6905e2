/** A bus whose client is paused before its nth call, while something happens that it knows nothing of. */

import type { Bus } from "../../../shared/bus/bus.ts";
import { ObjectBlobs } from "../../../shared/bus/storage/blobs.ts";

const calls = new Set<string | symbol>([
  ...["publish", "last", "read", "lastPerSubject", "streamInfo", "streamNames"],
  ...["purge", "deleteMessage", "deleteConsumer", "consumers", "ensureStream"],
]);

export interface PausedBus {
  bus: Bus;
  /** Whether it made so many calls at all. */
  paused: boolean;
}

/** Not before `deleteStream`: NATS deletes streams by name alone, and its caller looks at the stream right before. */
export function pausedBefore(bus: Bus, nth: number, happens: () => Promise<void>): PausedBus {
  let made = 0;
  const result: PausedBus = { bus, paused: false };
  const pause = async (): Promise<void> => {
    if (++made !== nth) return;
    result.paused = true;
    await happens();
  };
  result.bus = new Proxy(bus, {
    get(target, key) {
      if (key === "blobs") return blobs;
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      if (key === "lastPerSubject") {
        return async function* (...args: unknown[]): AsyncGenerator<unknown> {
          await pause();
          yield* value.apply(target, args);
        };
      }
      if (!calls.has(key)) return value.bind(target);
      return async (...args: unknown[]): Promise<unknown> => {
        await pause();
        return value.apply(target, args);
      };
    },
  });
  const blobs = new ObjectBlobs(result.bus, "blobs", { replicas: 1 });
  return result;
}
