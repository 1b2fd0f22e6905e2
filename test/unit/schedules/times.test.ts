import { describe, expect, it } from "vitest";
import type { ScheduleSpec } from "../../../schemas/index.ts";
import {
  dueAt,
  lookForDue,
  nextTimes,
  parseSchedule,
  runId,
  timesBetween,
} from "../../../shared/schedules/index.ts";

const at = (text: string) => Date.parse(text);
const now = at("2026-11-17T12:00:00Z");
const times = (spec: Partial<ScheduleSpec>, from: string, count: number) =>
  nextTimes(parseSchedule({ orchestration: "report", ...spec }, undefined), at(from), count).map((time) =>
    new Date(time).toISOString().replace(".000Z", "Z"),
  );
const berlin = { timeZone: "Europe/Berlin" };

describe("cron", () => {
  it("has five fields, or six with seconds in front", () => {
    expect(times({ cron: "30 9 * * 1-5" }, "2026-11-20T09:00:00Z", 2)).toEqual([
      "2026-11-20T09:30:00Z",
      "2026-11-23T09:30:00Z",
    ]);
    expect(times({ cron: "*/20 * * * * *" }, "2026-11-20T09:00:05Z", 2)).toEqual([
      "2026-11-20T09:00:20Z",
      "2026-11-20T09:00:40Z",
    ]);
  });

  it("of several lines the next is whichever comes first, once where two meet", () => {
    expect(times({ cron: ["0 12 * * *", "0 6 * * *", "0 12 * * *"] }, "2026-11-20T05:00:00Z", 3)).toEqual([
      "2026-11-20T06:00:00Z",
      "2026-11-20T12:00:00Z",
      "2026-11-21T06:00:00Z",
    ]);
  });

  it("in spring: a time that does not exist comes when the clock has been put forward", () => {
    // 2:30 on March 29 does not exist: the clock goes from 2:00 to 3:00, which is 1:00 in UTC.
    expect(times({ cron: "30 2 * * *", ...berlin }, "2026-03-28T00:00:00Z", 3)).toEqual([
      "2026-03-28T01:30:00Z",
      "2026-03-29T01:00:00Z",
      "2026-03-30T00:30:00Z",
    ]);
  });

  it("in autumn: a time of the day that comes twice runs once, the first time", () => {
    expect(times({ cron: "30 2 * * *", ...berlin }, "2026-10-24T22:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00Z",
      "2026-10-26T01:30:00Z",
    ]);
  });

  it("what comes every hour comes every hour, also in the night that is longer or shorter", () => {
    expect(times({ cron: "0 * * * *", ...berlin }, "2026-10-24T23:30:00Z", 4)).toEqual([
      "2026-10-25T00:00:00Z",
      "2026-10-25T01:00:00Z",
      "2026-10-25T02:00:00Z",
      "2026-10-25T03:00:00Z",
    ]);
    expect(times({ cron: "0 * * * *", ...berlin }, "2026-03-28T23:30:00Z", 3)).toEqual([
      "2026-03-29T00:00:00Z",
      "2026-03-29T01:00:00Z",
      "2026-03-29T02:00:00Z",
    ]);
  });

  it("the last day of a month, and days some months do not have", () => {
    expect(times({ cron: "0 0 L * *" }, "2026-01-15T00:00:00Z", 2)).toEqual([
      "2026-01-31T00:00:00Z",
      "2026-02-28T00:00:00Z",
    ]);
    expect(times({ cron: "0 0 31 * *" }, "2026-02-01T00:00:00Z", 2)).toEqual([
      "2026-03-31T00:00:00Z",
      "2026-05-31T00:00:00Z",
    ]);
  });
});

it("an interval counts from the epoch, or so much behind it", () => {
  expect(times({ every: "15m" }, "2026-11-20T09:05:00Z", 2)).toEqual([
    "2026-11-20T09:15:00Z",
    "2026-11-20T09:30:00Z",
  ]);
  expect(times({ every: "1h", offset: "10m" }, "2026-11-20T09:10:00Z", 1)).toEqual(["2026-11-20T10:10:00Z"]);
});

it("single times come in order, each once, and not before they start or after they end", () => {
  const single = ["2026-12-24T18:00:00Z", "2026-12-01T00:00:00Z", "2026-12-24T18:00:00Z"];
  expect(times({ at: single }, "2026-11-20T09:05:00Z", 5)).toEqual([
    "2026-12-01T00:00:00Z",
    "2026-12-24T18:00:00Z",
  ]);
  const zones = ["2026-12-24T18:00+02:00", "2026-12-24T15:30", "2026-12-24"];
  expect(times({ at: zones }, "2026-11-20T09:05:00Z", 5)).toEqual([
    "2026-12-24T00:00:00Z",
    "2026-12-24T15:30:00Z",
    "2026-12-24T16:00:00Z",
  ]);
  const bounds = { startAt: "2026-11-22T00:00:00Z", endAt: "2026-11-23T00:00:00Z" };
  expect(times({ every: "12h", ...bounds }, "2026-11-20T09:05:00Z", 5)).toEqual([
    "2026-11-22T00:00:00Z",
    "2026-11-22T12:00:00Z",
    "2026-11-23T00:00:00Z",
  ]);
});

it("a time is put off by the same each time it is asked, and never by more than it may", () => {
  const schedule = parseSchedule({ orchestration: "report", every: "1m", jitter: "30s" }, now);
  const delays = timesBetween(schedule, now, now + 6_000_000, 100).map(
    (time) => dueAt(schedule, "a", time) - time,
  );
  expect(delays).toEqual(
    timesBetween(schedule, now, now + 6_000_000, 100).map((time) => dueAt(schedule, "a", time) - time),
  );
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...delays)).toBeLessThanOrEqual(30_000);
  expect(new Set(delays).size).toBeGreaterThan(80);
});

it("runs have ids made of their time", () => {
  expect(runId("nightly", at("2026-11-17T02:30:00Z"))).toBe("nightly-20261117T023000Z");
  expect(runId("often", at("2026-11-17T02:30:00.250Z"))).toBe("often-20261117T023000250Z");
});

describe("what is due", () => {
  const schedule = parseSchedule({ orchestration: "report", every: "1m", catchUp: "5m" }, now);
  const minute = 60_000;

  it("everything since the last look, and when to look again", () => {
    expect(lookForDue(schedule, "a", { cursor: now, now: now + 2 * minute + 5, atMost: 10 })).toEqual({
      times: [now + minute, now + 2 * minute],
      missed: 0,
      cursor: now + 2 * minute,
      next: { time: now + 3 * minute, at: now + 3 * minute },
    });
  });

  it("what is over for longer than it catches up is missed", () => {
    const due = lookForDue(schedule, "a", { cursor: now, now: now + 60 * minute, atMost: 10 });
    expect(due.missed).toBe(54);
    expect(due.times).toHaveLength(6);
  });

  it("what jitter has put off for longer than it catches up is not late by that", () => {
    const put = parseSchedule({ orchestration: "report", every: "1m", jitter: "1h", catchUp: "1m" }, now);
    const due: number[] = [];
    let cursor = now;
    for (let at = now; at <= now + 180 * minute; at += minute) {
      const look = lookForDue(put, "a", { cursor, now: at, atMost: 100 });
      expect(look.missed).toBe(0);
      cursor = look.cursor;
      due.push(...look.times);
    }
    expect(due).toEqual(timesBetween(put, now + 1, cursor, 1000));
    expect(due.length).toBeGreaterThanOrEqual(119);
  });

  it("years of absence are not counted minute by minute", () => {
    const due = lookForDue(schedule, "a", { cursor: now, now: now + 5_000_000 * minute, atMost: 10 });
    expect(due.missed).toBe(1000);
    expect(due.times).toHaveLength(6);
  });

  it("no more at once than asked for; the rest is due at once", () => {
    const due = lookForDue(schedule, "a", { cursor: now, now: now + 5 * minute, atMost: 2 });
    expect(due.times).toHaveLength(2);
    expect(due.next?.at).toBe(now + 3 * minute);
  });
});

describe("what is no schedule says what is wrong with it", () => {
  const right =
    'a right one is "0 9 * * 1-5" (nine o\'clock on weekdays), next at 2026-11-18T09:00:00.000Z, 2026-11-19T09:00:00.000Z, 2026-11-20T09:00:00.000Z';
  it.each([
    [{ cron: "61 * * * *" }, `cron: "61 * * * *": there is no minute: 61; ${right}`],
    [{ cron: "0 25 * * *" }, `cron: "0 25 * * *": there is no hour: 25; ${right}`],
    [{ cron: "0 0 32 * *" }, /there is no day: 32;/],
    [{ cron: "0 0 1 13 *" }, /there is no month: 13;/],
    [{ cron: "0 0 * * 8" }, /there is no dayOfWeek: 8;/],
    [
      { cron: "* * *" },
      `cron: "* * *": exactly five, six, or seven space separated parts are required; ${right}`,
    ],
    [
      { cron: "x * * * *" },
      `cron: "x * * * *": configuration entry 1 (x) contains illegal characters; ${right}`,
    ],
    [{ cron: "0 0 30 2 *" }, `cron: "0 0 30 2 *": it never comes; ${right}`],
    [
      { cron: "0 9 * * *", timeZone: "Mars/Olympus" },
      `timeZone: "Mars/Olympus" is no time zone this server knows; write an IANA name, such as "Europe/Berlin"; ${right}`,
    ],
    [{}, "it has no time: it needs one of cron, every and at"],
    [{ cron: "0 9 * * *", every: "1h" }, "it has both cron and every: a schedule has one of them"],
    [{ every: "1h", timeZone: "UTC" }, "it has both timeZone and every: a time zone is for cron alone"],
    [{ at: "2027-01-01T00:00:00Z", offset: 5 }, "it has both offset and at: an offset is for every alone"],
    [{ every: 0 }, "every: 0 ms is too often, the shortest is 100 ms"],
    [{ every: "soon" }, /every: "soon" is not a duration/],
    [{ at: "tomorrow" }, /at: "tomorrow" is no time; write ISO 8601/],
    // Read by Date.parse as a day of the year 2001, or of another month, by the clock of whichever process reads it.
    [{ at: "someday 1" }, /at: "someday 1" is no time/],
    [{ at: "2027-02-30T00:00:00Z" }, /at: "2027-02-30T00:00:00Z" is no time/],
    [{ every: "1h", startAt: "1/2/2027" }, /startAt: "1\/2\/2027" is no time/],
    [{ every: "1h", endAt: "2027" }, /endAt: "2027" is no time/],
    [{ at: "2020-01-01T00:00:00Z" }, "at has passed: the schedule has no time left"],
    [{ every: "1h", endAt: "2020-01-01T00:00:00Z" }, "endAt has passed: the schedule has no time left"],
    [
      { every: "1h", startAt: "2028-01-01T00:00:00Z", endAt: "2027-01-01T00:00:00Z" },
      "endAt is before startAt: there is no time between them",
    ],
    [{ cron: "0 0 1 1 *", endAt: "2026-12-01" }, "cron has no time left within endAt"],
    [
      { at: "2027-01-01", startAt: "2027-02-01", endAt: "2027-03-01" },
      "at has no time left within startAt and endAt",
    ],
    [{ every: "1h", limit: 0 }, /limit: /],
    [{ every: "1h", jitter: -5 }, /jitter: /],
    [{ every: "1h", overlap: "sometimes" }, /overlap: /],
    [{ every: "1h", orchestration: "no such name!" }, /orchestration: must be/],
  ])("%j", (spec, message) => {
    const parse = () => parseSchedule({ orchestration: "report", ...spec }, now);
    expect(parse).toThrow(typeof message === "string" ? `not a schedule: ${message}` : message);
    try {
      parse();
    } catch (error) {
      expect(error).toMatchObject({ code: "invalid_schedule" });
    }
  });
});
