/** The times of a schedule. They depend only on the schedule and the given instant. */
import { hash32 } from "../runtime/index.ts";
import type { ParsedSchedule, Recurrence } from "./parse-schedule.ts";

/** The first time after `after`; undefined if no time is left. Ignores jitter and the limit of runs. */
export function nextTime({ recurrence, startAt, endAt }: ParsedSchedule, after: number): number | undefined {
  const from = startAt === undefined ? after : Math.max(after, startAt - 1);
  const next = following(recurrence, from);
  return next === undefined || (endAt !== undefined && next > endAt) ? undefined : next;
}

function following(recurrence: Recurrence, after: number): number | undefined {
  switch (recurrence.kind) {
    case "cron": {
      const times = recurrence.lines.flatMap((line) => line.nextRun(new Date(after))?.getTime() ?? []);
      return times.length === 0 ? undefined : Math.min(...times);
    }
    case "every": {
      const { everyMs, offsetMs } = recurrence;
      return (Math.floor((after - offsetMs) / everyMs) + 1) * everyMs + offsetMs;
    }
    case "at":
      return recurrence.at.find((time) => time > after);
  }
}

/** When a time is handled, jitter included: the same result for every call. */
export function dueAt({ jitterMs }: ParsedSchedule, scheduleId: string, time: number): number {
  return jitterMs === 0 ? time : time + (hash32(`${scheduleId}:${time}`) % (jitterMs + 1));
}

export function nextTimes(schedule: ParsedSchedule, after: number, count: number): number[] {
  const times: number[] = [];
  for (let time = nextTime(schedule, after); time !== undefined; time = nextTime(schedule, time)) {
    if (times.length >= count) break;
    times.push(time);
  }
  return times;
}

/** Includes both ends; returns at most `most` times. */
export function timesBetween(schedule: ParsedSchedule, from: number, to: number, most: number): number[] {
  const times: number[] = [];
  for (let time = nextTime(schedule, from - 1); time !== undefined; time = nextTime(schedule, time)) {
    if (time > to || times.length >= most) break;
    times.push(time);
  }
  return times;
}

/**
 * The id of the instance that a time starts: a repeated start has the same id, so the instance starts once.
 */
export function runId(scheduleId: string, time: number): string {
  const [date = "", fraction = ""] = new Date(time).toISOString().replace(/[-:]/g, "").split(".");
  const ms = fraction === "000Z" ? "" : fraction.slice(0, 3);
  return `${scheduleId}-${date}${ms}Z`;
}
