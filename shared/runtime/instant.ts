/** Instants as people write them, read alike by every process, whatever its time zone. */

const iso =
  /^(\d{4})-(\d\d)-(\d\d)(?:T([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?$/;

/** ISO 8601 in UTC, or with an offset of its own. Undefined for any other text, and for days that no month has. */
export function parseInstant(text: string): number | undefined {
  const [all, year, month, day, hour, zone] = iso.exec(text) ?? [];
  if (all === undefined || Number(day) > daysIn(Number(year), Number(month))) return undefined;
  const at = Date.parse(hour !== undefined && zone === undefined ? `${text}Z` : text);
  return Number.isFinite(at) ? at : undefined;
}

/** Day 0 of a month is the last day of the one before. */
const daysIn = (year: number, month: number): number => new Date(Date.UTC(year, month, 0)).getUTCDate();
