import { Fault } from "../errors/index.ts";

/** `"250ms" "5s" "2m" "1h" "7d"` or milliseconds. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `what` names the option in the error. */
export function parseDuration(value: Duration | string, what: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  const text = String(value);
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text);
  const ms = match ? Number(match[1]) * (unitMs[match[2] ?? "ms"] ?? Number.NaN) : Number.NaN;
  if (Number.isFinite(ms)) return Math.round(ms);
  throw new Fault("contract", {
    code: "invalid_duration",
    message: `${what}: "${text}" is not a duration`,
    hint: 'Write milliseconds as a number, or "250ms", "5s", "2m", "1h", "7d".',
  });
}
