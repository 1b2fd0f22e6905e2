/** Schedules as text for people. Pure. */
import type { ScheduleView } from "../../../shared/sdk/index.ts";
import { type Paint, plain } from "../terminal/paint.ts";
import { brief, pairs, table, time } from "../terminal/text.ts";

export const scheduleTable = (schedules: readonly ScheduleView[], paint: Paint = plain): string =>
  table(
    schedules,
    [
      { title: "ID", value: ({ scheduleId }) => scheduleId },
      { title: "STATUS", value: ({ status }) => status, style: ({ status }) => styles[status] },
      { title: "STARTS", value: ({ spec }) => spec?.orchestration },
      { title: "WHEN", value: when },
      { title: "NEXT", value: ({ next }) => time(next[0]) },
      { title: "RUNS", value: ({ runs }) => runs, align: "right" },
      { title: "NOTE", value: ({ note, error }) => note ?? error },
    ],
    paint,
  );

const styles = { pending: "dim", active: "green", paused: "yellow", finished: "dim", failed: "red" } as const;

export function when({ spec }: ScheduleView): string {
  if (!spec) return "";
  if (spec.cron !== undefined) return `${[spec.cron].flat().join("; ")} (${spec.timeZone ?? "UTC"})`;
  if (spec.every !== undefined) return `every ${shown(spec.every)}`;
  return `at ${[spec.at ?? []].flat().map(String).join(", ")}`;
}

const shown = (span: number | string): string => (typeof span === "number" ? `${span} ms` : span);

export function shownSchedule(schedule: ScheduleView, paint: Paint = plain): string {
  const { spec, next, recent, running } = schedule;
  return pairs(
    [
      ["id", schedule.scheduleId],
      ["status", schedule.status],
      ["note", schedule.note],
      ["error", schedule.error],
      ["starts", spec?.orchestration],
      ["input", brief(spec?.input, 1000)],
      ["when", when(schedule)],
      ["from", spec?.startAt],
      ["until", spec?.endAt],
      ["limit", spec?.limit],
      ["jitter", spec?.jitter],
      ["overlap", spec?.overlap ?? "skip"],
      ["catch up", spec?.catchUp],
      ["created", time(schedule.createdAt)],
      ["runs", schedule.runs],
      ["skipped", schedule.skipped],
      ["missed", schedule.missed],
      ["running", running.map(({ instanceId }) => instanceId).join(", ")],
      ["waiting", schedule.waiting],
      ["next", next.map(time).join(", ")],
      ["latest", recent.map(({ instanceId }) => instanceId).join(", ")],
    ],
    paint,
  );
}
