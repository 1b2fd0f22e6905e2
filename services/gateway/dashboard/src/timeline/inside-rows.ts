import type { InstanceTimeline } from "../../../../../shared/timeline/index.ts";
import { layout, type Row } from "./layout.ts";

/** Inserts the rows of each expanded child below the row of its bar. Pure. */
export const withInside = (
  rows: readonly Row[],
  shown: ReadonlyMap<string, InstanceTimeline | undefined>,
): Row[] =>
  rows.flatMap((row) => {
    if (row.kind !== "bars" || shown.size === 0) return [row];
    const inner = row.bars.flatMap(({ work }) => {
      const model = work.childId === undefined ? undefined : shown.get(work.childId);
      const of = work.childId;
      return model && of !== undefined ? layout(model).rows.map((one): Row => ({ ...one, of })) : [];
    });
    return [row, ...inner];
  });
