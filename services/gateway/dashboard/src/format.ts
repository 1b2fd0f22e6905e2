/** Formats numbers and times for people. */
const clock = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
  timeZoneName: "short",
});
const short = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
});
const whole = new Intl.NumberFormat("en");

/**
 * Formats a time that a person has set, with its seconds where it has any, in the given time zone (IANA name);
 * without one, in the reader's.
 */
export function wallTime(at: number, timeZone?: string): string {
  const options: Intl.DateTimeFormatOptions = {
    ...{ weekday: "short", day: "numeric", month: "short", year: "numeric" },
    ...{ hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    ...(at % 60_000 === 0 ? {} : { second: "2-digit" }),
    ...(at % 1000 === 0 ? {} : { fractionalSecondDigits: 3 }),
  };
  try {
    return new Intl.DateTimeFormat(undefined, { ...options, ...(timeZone ? { timeZone } : {}) }).format(at);
  } catch {
    // A zone that this browser does not know.
    return new Intl.DateTimeFormat(undefined, { ...options, timeZoneName: "short" }).format(at);
  }
}

export const absolute = (at: number): string => clock.format(at);
export const timeOfDay = (at: number): string => short.format(at);
export const count = (n: number): string => whole.format(n);
export const plural = (n: number, what: string): string => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

export function ago(at: number, now: number): string {
  const ms = now - at;
  if (ms < -1500) return `in ${duration(-ms, 1)}`;
  if (ms < 1500) return "now";
  return `${duration(ms, 1)} ago`;
}

const units: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/** `1 h 4 min`, `3.2 s`, `12 ms`. */
export function duration(ms: number, parts = 2): string {
  if (ms < 1) return ms <= 0 ? "0 ms" : "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const shown: string[] = [];
  let left = Math.round(ms / 1000) * 1000;
  for (const [name, size] of units) {
    const n = Math.floor(left / size);
    if (n === 0 && shown.length === 0) continue;
    if (n > 0) shown.push(`${n} ${name}`);
    left -= n * size;
    if (shown.length >= parts) break;
  }
  return shown.join(" ");
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const names = ["KiB", "MiB", "GiB", "TiB"];
  let value = n;
  let name = "B";
  for (const next of names) {
    if (value < 1024) break;
    value /= 1024;
    name = next;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${name}`;
}

export const latency = (ms: number): string =>
  ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : duration(ms);
