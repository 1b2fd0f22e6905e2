/** The history of one execution; a reload requests only the new events. */
import { useEffect, useRef } from "preact/hooks";
import { get, type HistoryPage } from "../../api.ts";
import { useLoad } from "../../parts/use-load.ts";

export function useHistory(id: string, execution: number | undefined) {
  const address = `/api/instances/${id}/history`;
  const loaded = useLoad(
    (signal) => get<HistoryPage>(`${address}${execution ? `?execution=${execution}` : ""}`, signal),
    [id, execution],
  );
  /** True if a reload was requested while the first one was under way. */
  const again = useRef(false);
  const more = async () => {
    const known = loaded.data;
    if (!known && loaded.loading) {
      again.current = true;
      return;
    }
    const last = known?.events.at(-1)?.event.id ?? 0;
    if (!known || last === 0) return loaded.reload();
    const next = await get<HistoryPage>(`${address}?after=${last}`).catch(() => undefined);
    if (!next) return;
    // Another execution began: the loaded events belong to the past one.
    if (next.execution !== known.execution) return loaded.reload();
    loaded.set((page) => {
      const at = page?.events.at(-1)?.event.id ?? 0;
      const fresh = next.events.filter(({ event }) => event.id > at);
      return page && fresh.length > 0 ? { ...next, events: [...page.events, ...fresh] } : page;
    });
  };
  useEffect(() => {
    if (loaded.loading || !again.current) return;
    again.current = false;
    void more();
  }, [loaded.loading]);
  return { page: loaded.data, error: loaded.error, more };
}
