/** Parses instants as a test writes them. */

/** A date, epoch milliseconds, or ISO 8601; text without an offset is a local time of a time zone. */
export type Instant = Date | number | string;

const onTheWall = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?)?$/;

export function instantOf(instant: Instant, timeZone: string, what: string): number {
  const at = typeof instant === "string" ? ofText(instant, timeZone) : Number(instant);
  if (Number.isFinite(at)) return at;
  throw new Error(
    `${what}: ${JSON.stringify(instant)} is no time; write ISO 8601, such as "2027-03-28T02:30" (on the wall of the time zone) or "2027-03-28T02:30:00Z"`,
  );
}

function ofText(text: string, timeZone: string): number {
  const [all, ...numbers] = onTheWall.exec(text) ?? [];
  if (all === undefined) return Date.parse(text);
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = numbers.map((n) => Number(n ?? 0));
  const asUtc = Date.UTC(year, month - 1, day, hour, minute, second);
  // The offset that holds at the instant itself, which is known only once it is applied. A local time that a
  // clock change skips becomes that much later; of a local time that occurs twice, the first is taken.
  const guess = asUtc - offsetMs(asUtc, timeZone);
  const [early, late] = [guess - 86_400_000, guess + 86_400_000].map((at) => asUtc - offsetMs(at, timeZone));
  if (early === undefined || late === undefined) return guess;
  const right = [early, late].filter((at) => at + offsetMs(at, timeZone) === asUtc);
  return right.length > 0 ? Math.min(...right) : early;
}

/** How far the local time of that zone is ahead of UTC at this instant. */
function offsetMs(at: number, timeZone: string): number {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  }).formatToParts(at);
  const part = (type: Intl.DateTimeFormatPartTypes) =>
    Number(parts.find((each) => each.type === type)?.value);
  const wall = Date.UTC(
    part("year"),
    part("month") - 1,
    part("day"),
    part("hour"),
    part("minute"),
    part("second"),
  );
  return wall - Math.floor(at / 1000) * 1000;
}
