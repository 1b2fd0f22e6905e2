/** The generation of messages, events and entries that may be written now (E1). */
import { firstGeneration, generationHeader, newestGeneration, versionHeader } from "../../schemas/index.ts";

/**
 * Passed to every writer. A field that came with generation 2 or later is written only if `allows` says so:
 *
 *     { v: 1, of, attempt, ...(generation.allows(2) && { proof }) }
 */
export interface Generation {
  /** The newest generation that every live process can read. */
  readonly written: number;
  allows(generation: number): boolean;
  /** True if a live process of that kind can read more than this process. */
  isLater(kind: FleetMember["kind"]): boolean;
  /** The processes that cannot read the newest generation; empty if the newest is written. */
  heldBackBy(): readonly FleetMember[];
}

/** A live process, as its entry in `services` or `workers` describes it. */
export interface FleetMember {
  readonly kind: "orchestrator" | "worker" | "watcher" | "gateway" | "other";
  readonly id: string;
  /** Undefined for workers of version 0.1.0, which do not write it. */
  readonly version: string | undefined;
  readonly generation: number;
}

/** For tests, and for processes that write to no other process. */
export const fixedGeneration = (written: number): Generation => ({
  written,
  allows: (generation) => generation <= written,
  isLater: () => false,
  heldBackBy: () => [],
});

export const everythingAllowed: Generation = fixedGeneration(newestGeneration);

/** The headers of a process's entry. `atMost`: the operator's limit, which keeps a downgrade possible. */
export function fleetHeaders(version: string, atMost = newestGeneration): Record<string, string> {
  const generation = Math.min(atMost, newestGeneration);
  return { [generationHeader]: String(generation), [versionHeader]: version };
}

/** The generation in the headers of an entry; an entry without one is of the first generation. */
export function generationOf(headers: Readonly<Record<string, string>>): number {
  const said = Number(headers[generationHeader]);
  return Number.isSafeInteger(said) && said >= firstGeneration ? said : firstGeneration;
}
