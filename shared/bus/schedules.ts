/** How a stored message says that it is a schedule, and for when. */
import type { Headers } from "./bus.ts";

export const scheduleHeader = "Nats-Schedule";

export const scheduleText = (at: number): string => `@at ${new Date(at).toISOString()}`;

/** Epoch milliseconds; undefined where it is no schedule for one instant. */
export function scheduledFor(headers: Headers): number | undefined {
  const [, text = ""] = /^@at (.+)$/.exec(headers[scheduleHeader] ?? "") ?? [];
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
