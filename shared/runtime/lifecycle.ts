/** One contract for everything that lives long: start means ready, stop means finished, twice is once. */
export interface Service {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Makes an async act happen once, however often it is asked for. */
export function once<T>(act: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => (running ??= act());
}

/** Waits for the work to settle, at most so long. */
export async function within(ms: number, work: Promise<unknown>): Promise<"settled" | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), ms);
  });
  const settled = work.then(
    () => "settled" as const,
    () => "settled" as const,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}
