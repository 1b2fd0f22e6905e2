/** Refusals of queries and updates that need no code to run. */
import type { Fault } from "../../errors/index.ts";

export const refusedBecause = (code: string, message: string, details?: unknown) => ({
  kind: "refused" as const,
  code,
  message,
  details,
  spoiled: false,
});
export const noInstance = (instanceId: string) =>
  refusedBecause("instance_not_found", `there is no instance ${instanceId}`);
export const endedInstance = (instanceId: string, status: string) =>
  refusedBecause("instance_ended", `instance ${instanceId} has ended (${status})`, { status });
export const parkedInstance = (instanceId: string, { code, message }: Fault) =>
  refusedBecause("instance_parked", `the code of instance ${instanceId} cannot be run: ${message}`, { code });
/** The instance ended before its code ran for the first time, so no code can answer. */
export const neverRan = (instanceId: string, query: string) =>
  refusedBecause(
    "unknown_query",
    `instance ${instanceId} answers no query "${query}": it ended before its code ran; there are: none`,
    { names: [] },
  );
