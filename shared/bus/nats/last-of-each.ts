import type { Stoppable, StoredMessage } from "../bus.ts";
import type { TailOptions } from "./tail.ts";

/** A tail that ends once it has caught up. */
export async function* lastOfEach(
  open: (options: TailOptions) => Promise<Stoppable>,
): AsyncGenerator<StoredMessage, void, undefined> {
  let waiting: StoredMessage[] = [];
  let caughtUp = false;
  let wake: () => void = () => undefined;
  const view = await open({
    existing: true,
    onMessage: (message) => {
      if (caughtUp) return;
      waiting.push(message);
      wake();
    },
    onCaughtUp: () => {
      caughtUp = true;
      wake();
    },
  });
  try {
    for (;;) {
      const batch = waiting;
      waiting = [];
      yield* batch;
      if (waiting.length > 0) continue;
      if (caughtUp) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    await view.stop();
  }
}
