/** Loads data for a component, and again on request. The old data stays until the new data has arrived. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  reload(): void;
  set(change: (data: T | undefined) => T | undefined): void;
}

export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[]): Loaded<T> {
  const [data, set] = useState<T | undefined>();
  const [error, setError] = useState<unknown>();
  const [loading, setLoading] = useState(true);
  const running = useRef<AbortController | undefined>(undefined);
  const reload = useCallback(() => {
    running.current?.abort();
    const mine = new AbortController();
    running.current = mine;
    setLoading(true);
    load(mine.signal)
      .then((value) => {
        if (mine.signal.aborted) return;
        set(value);
        setError(undefined);
      })
      .catch((thrown: unknown) => {
        if (!mine.signal.aborted) setError(thrown);
      })
      .finally(() => {
        if (!mine.signal.aborted) setLoading(false);
      });
  }, deps);
  useEffect(() => {
    reload();
    return () => running.current?.abort();
  }, [reload]);
  return { data, error, loading, reload, set: useCallback((change) => set(change), []) };
}
