import type { SessionRecord } from "../../schemas/index.ts";

/**
 * A phase as people read it. On the wire a session that its holder parked until the next call is `parked`, as in 0.1.0.
 * People know that word for an instance that is stuck, so they read *idle*.
 */
export const phaseWord = (phase: SessionRecord["phase"]): string => (phase === "parked" ? "idle" : phase);
