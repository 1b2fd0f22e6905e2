/** Which generation of messages, events and entries may be written now (E1). */
import { firstGeneration, generationHeader, newestGeneration, versionHeader } from "../../schemas/index.ts";

/**
 * What writers are given. Whatever has come with generation 2 or later is written only where `allows` says so:
 *
 *     { v: 1, of, attempt, ...(generation.allows(2) && { proof }) }
 */
export interface Generation {
  /** The newest that everybody alive can read. */
  readonly written: number;
  allows(generation: number): boolean;
  /** Somebody of that kind is alive who can read more than this process. */
  isLater(kind: FleetMember["kind"]): boolean;
  /** Who cannot read the newest: empty where it is written. */
  heldBackBy(): readonly FleetMember[];
}

/** Somebody alive, as its entry in `services` or `workers` tells. */
export interface FleetMember {
  readonly kind: "orchestrator" | "worker" | "watcher" | "gateway" | "other";
  readonly id: string;
  /** Undefined: one of 0.1.0's workers, which do not say it. */
  readonly version: string | undefined;
  readonly generation: number;
}

/** For tests, and for those who write to nobody else. */
export const fixedGeneration = (written: number): Generation => ({
  written,
  allows: (generation) => generation <= written,
  isLater: () => false,
  heldBackBy: () => [],
});

export const everythingAllowed: Generation = fixedGeneration(newestGeneration);

/** What a process says of itself beside its entry. `atMost`: its operator keeps the way back open. */
export function fleetHeaders(version: string, atMost = newestGeneration): Record<string, string> {
  const generation = Math.min(atMost, newestGeneration);
  return { [generationHeader]: String(generation), [versionHeader]: version };
}

/** What the headers of an entry say; who says nothing is of the first generation. */
export function generationOf(headers: Readonly<Record<string, string>>): number {
  const said = Number(headers[generationHeader]);
  return Number.isSafeInteger(said) && said >= firstGeneration ? said : firstGeneration;
}
