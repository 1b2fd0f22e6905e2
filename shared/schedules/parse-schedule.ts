/** Checks a schedule as its user wrote it. An error names the place and gives a correct example. */
import { Cron } from "croner";
import { type Overlap, ScheduleSpec } from "../../schemas/index.ts";
import { HoldfastError, isFault, messageOf } from "../errors/index.ts";
import { parseDuration, parseInstant } from "../runtime/index.ts";
import { nextTime } from "./schedule-times.ts";

export type Recurrence =
  | { kind: "cron"; lines: readonly Cron[] }
  | { kind: "every"; everyMs: number; offsetMs: number }
  /** In ascending order. */
  | { kind: "at"; at: readonly number[] };

export interface ParsedSchedule {
  readonly spec: ScheduleSpec;
  readonly recurrence: Recurrence;
  readonly startAt: number | undefined;
  readonly endAt: number | undefined;
  readonly limit: number | undefined;
  readonly jitterMs: number;
  readonly overlap: Overlap;
  readonly catchUpMs: number;
}

const defaultCatchUpMs = 3_600_000;
const shortestEveryMs = 100;
/** A time that was in the future when the user wrote it may have passed when it arrives. */
const lateMs = 60_000;

/** If `now` is given, at least one time must come after it. Throws `invalid_schedule`. */
export function parseSchedule(value: unknown, now: number | undefined): ParsedSchedule {
  const checked = ScheduleSpec.safeParse(value);
  if (!checked.success) {
    const issue = checked.error.issues[0];
    throw refused(`${issue?.path.join(".") || "the schedule"}: ${issue?.message ?? "is none"}`);
  }
  const spec = checked.data;
  const recurrence = recurrenceOf(spec, now);
  const startAt = spec.startAt === undefined ? undefined : instant(spec.startAt, "startAt");
  const endAt = spec.endAt === undefined ? undefined : instant(spec.endAt, "endAt");
  if (startAt !== undefined && endAt !== undefined && endAt < startAt)
    throw refused("endAt is before startAt: there is no time between them");
  if (now !== undefined && endAt !== undefined && endAt < now)
    throw refused("endAt has passed: the schedule has no time left");
  if (now !== undefined && recurrence.kind === "at" && !recurrence.at.some((time) => time > now - lateMs))
    throw refused("at has passed: the schedule has no time left");
  const schedule: ParsedSchedule = {
    spec,
    recurrence,
    startAt,
    endAt,
    limit: spec.limit,
    jitterMs: spec.jitter === undefined ? 0 : span(spec.jitter, "jitter"),
    overlap: spec.overlap ?? "skip",
    catchUpMs: spec.catchUp === undefined ? defaultCatchUpMs : span(spec.catchUp, "catchUp"),
  };
  const bounds = (["startAt", "endAt"] as const).filter((name) => spec[name] !== undefined).join(" and ");
  if (now !== undefined && bounds !== "" && nextTime(schedule, now - lateMs) === undefined)
    throw refused(`${recurrence.kind} has no time left within ${bounds}`);
  return schedule;
}

function recurrenceOf(spec: ScheduleSpec, now: number | undefined): Recurrence {
  const given = (["cron", "every", "at"] as const).filter((name) => spec[name] !== undefined);
  const [kind, other] = given;
  if (kind === undefined) throw refused("it has no time: it needs one of cron, every and at");
  if (other !== undefined) throw refused(`it has both ${kind} and ${other}: a schedule has one of them`);
  if (spec.timeZone !== undefined && kind !== "cron")
    throw refused(`it has both timeZone and ${kind}: a time zone is for cron alone`);
  if (spec.offset !== undefined && kind !== "every")
    throw refused(`it has both offset and ${kind}: an offset is for every alone`);
  switch (kind) {
    case "cron":
      return cron(spec, now);
    case "every": {
      const everyMs = span(spec.every ?? 0, "every");
      if (everyMs < shortestEveryMs)
        throw refused(`every: ${everyMs} ms is too often, the shortest is ${shortestEveryMs} ms`);
      return {
        kind,
        everyMs,
        offsetMs: spec.offset === undefined ? 0 : span(spec.offset, "offset") % everyMs,
      };
    }
    case "at": {
      const times = [spec.at ?? []].flat().map((time) => instant(time, "at"));
      return { kind, at: [...new Set(times)].sort((a, b) => a - b) };
    }
  }
}

function cron({ cron: given, timeZone = "UTC" }: ScheduleSpec, now: number | undefined): Recurrence {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
  } catch {
    throw refused(
      `timeZone: ${JSON.stringify(timeZone)} is no time zone this server knows; write an IANA name, such as "Europe/Berlin"; ${example(now)}`,
    );
  }
  const lines = [given ?? []].flat().map((line) => {
    try {
      const parsed = new Cron(line, { timezone: timeZone, paused: true });
      if (now !== undefined && parsed.nextRun(new Date(now)) === null) throw new Error("it never comes");
      return parsed;
    } catch (error) {
      throw refused(`cron: ${JSON.stringify(line)}: ${plain(error)}; ${example(now)}`);
    }
  });
  return { kind: "cron", lines };
}

/** The message of croner's error, without the library's name in front. */
const plain = (error: unknown): string =>
  messageOf(error)
    .replace(/^Cron\w*: /, "")
    .replace(/^invalid configuration format .*, exactly/i, "exactly")
    // It counts days and months from 0.
    .replace(
      /^Invalid value for (day|month): (\d+)$/,
      (_, unit, n) => `there is no ${unit}: ${Number(n) + 1}`,
    )
    .replace(/^Invalid value for/, "there is no")
    .replace(/\.$/, "");

function example(now = 0): string {
  const line = "0 9 * * 1-5";
  const times = new Cron(line, { timezone: "UTC", paused: true }).nextRuns(3, new Date(now));
  return `a right one is "${line}" (nine o'clock on weekdays), next at ${times.map((time) => time.toISOString()).join(", ")}`;
}

function span(value: number | string, what: string): number {
  try {
    return parseDuration(value, what);
  } catch (error) {
    throw refused(isFault(error) ? `${error.message}. ${error.hint ?? ""}` : String(error));
  }
}

function instant(value: number | string, what: string): number {
  const at = typeof value === "number" ? value : parseInstant(value);
  if (at !== undefined) return at;
  throw refused(
    `${what}: ${JSON.stringify(value)} is no time; write ISO 8601, such as "2027-01-31T09:00:00Z"`,
  );
}

const refused = (message: string): HoldfastError =>
  new HoldfastError({ code: "invalid_schedule", message: `not a schedule: ${message}` });
