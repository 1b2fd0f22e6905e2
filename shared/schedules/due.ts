/** What has come due since a schedule was last looked at, and when to look again. */
import type { ParsedSchedule } from "./parse-schedule.ts";
import { dueAt, nextTime } from "./times.ts";

export interface Due {
  /** In order. */
  times: number[];
  /** Times that are over for longer than the schedule catches up. A thousand at the most are counted. */
  missed: number;
  /** The latest time that was seen to. */
  cursor: number;
  /** The next time, and when it is to be seen to; absent where none is to come. */
  next?: { time: number; at: number };
}

const countedMisses = 1000;

export function lookForDue(
  schedule: ParsedSchedule,
  scheduleId: string,
  { cursor, now, atMost }: { cursor: number; now: number; atMost: number },
): Due {
  const due: Due = { times: [], missed: 0, cursor };
  const oldest = now - schedule.catchUpMs;
  for (;;) {
    // After a long pause nobody counts every second of it.
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
