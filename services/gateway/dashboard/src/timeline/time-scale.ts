/**
 * The drawn time scale: stretches in which nothing runs are shortened, so that a wait of a day does not hide
 * the seconds of work around it. Pure.
 */
import type { InstanceTimeline } from "../../../../../shared/timeline/index.ts";

interface Gap {
  from: number;
  to: number;
  /** The drawn length. */
  shown: number;
}

export interface TimeScale {
  gaps: readonly Gap[];
  /** Converts a time to its place on the scale, in drawn milliseconds. */
  place(at: number): number;
  /** Converts a place back to a time. */
  time(place: number): number;
}

export const trueScale: TimeScale = { gaps: [], place: (at) => at, time: (place) => place };

/** A wait is shortened if it is longer than this share of the time in which something ran. */
const idleShare = 0.08;
const shortestIdleMs = 1_500;

export function idleScale(model: InstanceTimeline, end: number): TimeScale {
  const waits = waitsOf(model, end);
  const idle = waits.reduce((sum, { from, to }) => sum + to - from, 0);
  const shown = Math.max(shortestIdleMs / 2, (end - model.from - idle) * idleShare);
  const gaps = waits.filter(({ from, to }) => to - from > 2 * shown).map((wait) => ({ ...wait, shown }));
  if (gaps.length === 0) return trueScale;
  return {
    gaps,
    place(at) {
      let saved = 0;
      for (const gap of gaps) {
        if (at <= gap.from) break;
        const share = Math.min(1, (at - gap.from) / (gap.to - gap.from));
        saved += share * (gap.to - gap.from - gap.shown);
      }
      return at - saved;
    },
    time(place) {
      let saved = 0;
      for (const gap of gaps) {
        const begin = gap.from - saved;
        if (place <= begin) break;
        const share = Math.min(1, (place - begin) / gap.shown);
        if (share < 1) return gap.from + share * (gap.to - gap.from);
        saved += gap.to - gap.from - gap.shown;
      }
      return place + saved;
    },
  };
}

/**
 * Stretches in which no activity, call or child runs and no session is being opened. Timers and held sessions
 * only wait.
 */
function waitsOf(model: InstanceTimeline, end: number): { from: number; to: number }[] {
  const busy: [from: number, to: number][] = [];
  for (const work of model.work) {
    if (work.kind === "timer") busy.push([work.from, work.from], [work.to ?? end, work.to ?? end]);
    else busy.push([work.from, work.to ?? end]);
  }
  for (const { segments, marks } of model.sessions) {
    for (const { phase, from, to } of segments)
      if (phase === "waiting" || phase === "starting") busy.push([from, to ?? end]);
    for (const { at } of marks) busy.push([at, at]);
  }
  for (const { at } of model.received) busy.push([at, at]);
  busy.push([model.from, model.from], [end, end]);
  busy.sort((a, b) => a[0] - b[0]);
  const waits: { from: number; to: number }[] = [];
  let until = model.from;
  for (const [from, to] of busy) {
    if (from - until > shortestIdleMs) waits.push({ from: until, to: from });
    until = Math.max(until, to);
  }
  return waits;
}
