/** How many pieces of work run in each column of a strip. Pure. */
import type { InstanceTimeline } from "../../../../../shared/timeline/index.ts";
import type { TimeScale } from "./time-scale.ts";

interface Column {
  running: number;
  failed: boolean;
}

export function density(
  model: InstanceTimeline,
  scale: TimeScale,
  whole: { from: number; to: number },
  count: number,
): Column[] {
  const columns: Column[] = Array.from({ length: count }, () => ({ running: 0, failed: false }));
  const per = count / Math.max(whole.to - whole.from, 1);
  const columnOf = (at: number) =>
    Math.min(count - 1, Math.max(0, Math.floor((scale.place(at) - whole.from) * per)));
  for (const work of model.work) {
    if (work.kind === "timer") continue;
    const last = columnOf(work.to ?? model.last);
    for (let index = columnOf(work.from); index <= last; index++) {
      const column = columns[index];
      if (column) column.running++;
    }
    const ending = columns[last];
    if (ending && work.state === "failed") ending.failed = true;
  }
  return columns;
}
