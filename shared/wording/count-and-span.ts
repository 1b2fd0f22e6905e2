/** `1 session`, `1,200 sessions` */
export const count = (n: number, what: string): string =>
  `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

/** The verb for that many. */
export const waits = (n: number): string => (n === 1 ? "waits" : "wait");

/** A rough duration, for sentences. */
export function span(ms: number): string {
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
