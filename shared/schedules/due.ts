/** The times of a schedule that have come due since the last look, and when to look again. */
import type { ParsedSchedule } from "./parse-schedule.ts";
import { dueAt, nextTime } from "./schedule-times.ts";

export interface Due {
  /** In ascending order. */
  times: number[];
  /** Number of times that passed longer ago than the schedule catches up. Counting stops at a thousand. */
  missed: number;
  /** The latest time that has been handled. */
  cursor: number;
  /** The next time, and when to handle it; undefined if no time is left. */
  next?: { time: number; at: number };
}

const countedMisses = 1000;

export function lookForDue(
  schedule: ParsedSchedule,
  scheduleId: string,
  { cursor, now, atMost }: { cursor: number; now: number; atMost: number },
): Due {
  const due: Due = { times: [], missed: 0, cursor };
  // Jitter delays a time, and the times that wait behind it; that delay does not count as late.
  const oldest = now - schedule.catchUpMs - schedule.jitterMs;
  for (;;) {
    // After a long pause the remaining missed times are skipped without counting them.
    if (due.missed === countedMisses) due.cursor = Math.max(due.cursor, oldest - 1);
    const time = nextTime(schedule, due.cursor);
    if (time === undefined) return due;
    const at = dueAt(schedule, scheduleId, time);
    if (at > now || due.times.length >= atMost) return { ...due, next: { time, at } };
    due.cursor = time;
    if (time < oldest) due.missed++;
    else due.times.push(time);
  }
}
