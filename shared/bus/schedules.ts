/** How the headers of a stored message say that it is a schedule, and for which time. */
import type { Headers } from "./bus.ts";
import { headerNames } from "./delivery/header-names.ts";

export const scheduleHeader = headerNames.schedule;

export const scheduleText = (at: number): string => `@at ${new Date(at).toISOString()}`;

/** Epoch milliseconds; undefined if the message is not a schedule for one instant. */
export function scheduledFor(headers: Headers): number | undefined {
  const [, text = ""] = /^@at (.+)$/.exec(headers[scheduleHeader] ?? "") ?? [];
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
