/** Loads data for a component, and again on request. The old data stays until the new data has arrived. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  reload(): void;
  set(change: (data: T | undefined) => T | undefined): void;
}

/** A request that is not answered for this long is given up when the next one is wanted. */
const longestWaitMs = 10_000;

interface Running {
  abort: AbortController;
  since: number;
  /** Something has changed since the request was sent. */
  again: boolean;
}

export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[]): Loaded<T> {
  const [data, set] = useState<T | undefined>();
  const [error, setError] = useState<unknown>();
  const [loading, setLoading] = useState(true);
  const running = useRef<Running | undefined>(undefined);
  const reload = useCallback(() => {
    const before = running.current;
    // Where changes come faster than answers, a request that was given up for each of them would never be answered.
    if (before && performance.now() - before.since < longestWaitMs) {
      before.again = true;
      return;
    }
    before?.abort.abort();
    const mine: Running = { abort: new AbortController(), since: performance.now(), again: false };
    running.current = mine;
    setLoading(true);
    load(mine.abort.signal)
      .then((value) => {
        if (running.current !== mine) return;
        set(value);
        setError(undefined);
      })
      .catch((thrown: unknown) => {
        if (running.current === mine) setError(thrown);
      })
      .finally(() => {
        if (running.current !== mine) return;
        running.current = undefined;
        setLoading(false);
        if (mine.again) reload();
      });
  }, deps);
  useEffect(() => {
    reload();
    return () => {
      running.current?.abort.abort();
      running.current = undefined;
    };
  }, [reload]);
  return { data, error, loading, reload, set: useCallback((change) => set(change), []) };
}

/** Reloads at an interval, for data whose changes send no live event. */
export function useEvery(ms: number, reload: () => void): void {
  useEffect(() => {
    const timer = setInterval(reload, ms);
    return () => clearInterval(timer);
  }, [ms, reload]);
}
