/** The times of a schedule. All of them follow from the schedule and the instant that is asked about. */
import { hash32 } from "../runtime/index.ts";
import type { ParsedSchedule, Recurrence } from "./parse-schedule.ts";

/** The first time after `after`, undefined where none is to come. Without jitter and without a limit of runs. */
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

/** When a time is seen to: the same however often it is asked. */
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

/** Both ends count; at most `most`. */
export function timesBetween(schedule: ParsedSchedule, from: number, to: number, most: number): number[] {
  const times: number[] = [];
  for (let time = nextTime(schedule, from - 1); time !== undefined; time = nextTime(schedule, time)) {
    if (time > to || times.length >= most) break;
    times.push(time);
  }
  return times;
}

/** The instance a time starts: a start that comes twice is one start. */
export function runId(scheduleId: string, time: number): string {
  const [date = "", fraction = ""] = new Date(time).toISOString().replace(/[-:]/g, "").split(".");
  const ms = fraction === "000Z" ? "" : fraction.slice(0, 3);
  return `${scheduleId}-${date}${ms}Z`;
}
