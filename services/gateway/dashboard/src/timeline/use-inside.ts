/**
 * Children whose timeline is expanded within that of their parent: loaded on request, and again with the
 * parent.
 */
import { useEffect, useState } from "preact/hooks";
import { foldTimeline, type InstanceTimeline } from "../../../../../shared/timeline/index.ts";
import { get, type HistoryPage } from "../api.ts";
import { toast } from "../parts/toasts.tsx";

export function useInside(parent: InstanceTimeline) {
  const [shown, setShown] = useState<ReadonlyMap<string, InstanceTimeline | undefined>>(new Map());
  const load = async (childId: string) => {
    try {
      const page = await get<HistoryPage>(`/api/instances/${childId}/history`);
      setShown((known) =>
        known.has(childId) ? new Map(known).set(childId, foldTimeline(page.events)) : known,
      );
    } catch (error) {
      toast(`The history of ${childId} cannot be read: ${error instanceof Error ? error.message : ""}`);
    }
  };
  useEffect(() => {
    for (const [childId, model] of shown) if (!model?.ended) void load(childId);
  }, [parent]);
  return {
    shown,
    toggle(childId: string) {
      setShown((known) => {
        const next = new Map(known);
        if (!next.delete(childId)) next.set(childId, undefined);
        return next;
      });
      if (!shown.has(childId)) void load(childId);
    },
  };
}
