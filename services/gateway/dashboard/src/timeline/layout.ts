/**
 * Lays a history out in rows of bars: concurrent work gets separate rows, consecutive work shares one. Pure.
 */
import type {
  InstanceTimeline,
  Mark,
  Received,
  Segment,
  SessionLife,
  Work,
} from "../../../../../shared/timeline/index.ts";
import { type TimeScale, trueScale } from "./time-scale.ts";

interface Bar {
  from: number;
  /** Undefined: not ended. */
  to: number | undefined;
  work: Work;
}

/** `of`: the child whose timeline is expanded inside its parent's. */
export type Row = { of?: string } & RowShapes;
type RowShapes =
  | { kind: "session"; label: string; session: SessionLife; segments: Segment[]; marks: Mark[] }
  | { kind: "bars"; label: string; bars: Bar[] }
  | { kind: "signals"; label: string; signals: Received[] };

export interface Layout {
  rows: Row[];
  /** Number of pieces of work without a row, because too many ran at the same time. */
  hidden: number;
}

const mostRows = 40;

export function layout(model: InstanceTimeline): Layout {
  const rows: Row[] = [];
  let hidden = 0;
  const add = (label: string, work: readonly Work[]) => {
    const packed = pack(work);
    hidden += packed.hidden;
    for (const [index, bars] of packed.rows.entries()) {
      rows.push({ kind: "bars", label: index === 0 ? label : "", bars });
    }
  };
  const calls = groupBy(model.work.filter(isOnSession), (work) => work.sessionId ?? "");
  for (const session of model.sessions) {
    const { segments, marks } = session;
    rows.push({ kind: "session", label: session.sessionId, session, segments, marks });
    add("calls", calls.get(session.sessionId) ?? []);
  }
  add(
    "activities",
    model.work.filter((work) => work.kind === "activity" && !isOnSession(work)),
  );
  add(
    "children",
    model.work.filter((work) => work.kind === "child"),
  );
  add(
    "timers",
    model.work.filter((work) => work.kind === "timer"),
  );
  if (model.received.length > 0) {
    const kinds = [...new Set(model.received.map(({ kind }) => `${kind}s`))];
    rows.push({ kind: "signals", label: kinds.join(", "), signals: model.received });
  }
  return { rows, hidden };
}

const isOnSession = (work: Work): boolean => work.sessionId !== undefined;

function groupBy<T>(list: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

/** Puts each bar into the first row that is free at its beginning; bars come in order of time. */
function pack(work: readonly Work[]): { rows: Bar[][]; hidden: number } {
  const rows: { bars: Bar[]; freeAt: number }[] = [];
  let hidden = 0;
  for (const item of work) {
    const bar: Bar = { from: item.from, to: item.to, work: item };
    const row = rows.find((candidate) => candidate.freeAt <= item.from);
    const freeAt = item.to ?? Number.POSITIVE_INFINITY;
    if (row) {
      row.bars.push(bar);
      row.freeAt = freeAt;
    } else if (rows.length < mostRows) rows.push({ bars: [bar], freeAt });
    else hidden++;
  }
  return { rows: rows.map((row) => row.bars), hidden };
}

export interface Slice {
  x: number;
  width: number;
  bar: Bar;
  /** How many bars were merged into this one. */
  merged: number;
  failed: boolean;
  /** Too narrow to stand alone: merged with other bars at the same place. */
  fine: boolean;
}

/** Bars narrower than this many pixels at the same place are drawn as one. */
const finest = 3;

/** The bars of a row in pixels: only those in view; bars finer than a pixel are merged into one block. */
export function slices(
  bars: readonly Bar[],
  view: { from: number; to: number; width: number; now: number; scale?: TimeScale },
): Slice[] {
  const { scale = trueScale } = view;
  const perMs = view.width / Math.max(view.to - view.from, 1);
  const xOf = (at: number) => (scale.place(at) - view.from) * perMs;
  const last = scale.time(view.to);
  const found: Slice[] = [];
  for (let index = firstEndingAfter(bars, scale.time(view.from), view.now); index < bars.length; index++) {
    const bar = bars[index];
    if (!bar || bar.from > last) break;
    const x = Math.max(0, xOf(bar.from));
    const right = Math.min(view.width, xOf(bar.to ?? view.now));
    const width = Math.max(right - x, 1.5);
    const before = found.at(-1);
    const failed = bar.work.state === "failed";
    const fine = width < finest;
    if (before?.fine && fine && Math.floor(before.x / finest) === Math.floor(x / finest)) {
      before.merged++;
      before.failed ||= failed;
      before.width = Math.max(before.width, x + width - before.x);
    } else found.push({ x, width, bar, merged: 1, failed, fine });
  }
  return found;
}

function firstEndingAfter(bars: readonly Bar[], at: number, now: number): number {
  let low = 0;
  let high = bars.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const bar = bars[middle];
    if (bar && (bar.to ?? now) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Round steps for the axis, at most `most` labels. */
export function ticks(from: number, to: number, most: number): number[] {
  const span = Math.max(to - from, 1);
  const steps = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
  ];
  const step = steps.find((size) => span / size <= most) ?? Math.ceil(span / most / 86_400_000) * 86_400_000;
  const found: number[] = [];
  for (let at = 0; at <= span; at += step) found.push(from + at);
  return found;
}

/** Owners get the colours in order of appearance: neighbours differ. */
export function ownerColours(model: InstanceTimeline, colours: number): Map<string, number> {
  const found = new Map<string, number>();
  for (const session of model.sessions) {
    for (const { workerId } of session.segments) {
      if (workerId !== undefined && !found.has(workerId)) found.set(workerId, found.size % colours);
    }
  }
  return found;
}
