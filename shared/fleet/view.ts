/**
 * Which processes run which version, which generation is written, and which processes hold it back: for
 * `doctor`, `/version` and the dashboard.
 */
import { z } from "zod";
import { newestGeneration } from "../../schemas/index.ts";
import type { FleetMember } from "./generation.ts";

export const FleetView = z.strictObject({
  /** The newest generation that the answering process can read and write. */
  newest: z.int(),
  written: z.int(),
  /** Version → number of processes; `unknown` are workers of 0.1.0, which do not write it. */
  versions: z.record(z.string(), z.int()),
  heldBackBy: z.array(
    z.strictObject({ kind: z.string(), id: z.string(), version: z.string(), generation: z.int() }),
  ),
});
export type FleetView = z.infer<typeof FleetView>;

const versionOf = ({ version }: FleetMember): string => version ?? "unknown";

export function fleetView(members: readonly FleetMember[]): FleetView {
  const versions: Record<string, number> = {};
  for (const member of members) versions[versionOf(member)] = (versions[versionOf(member)] ?? 0) + 1;
  return {
    newest: newestGeneration,
    written: Math.min(newestGeneration, ...members.map(({ generation }) => generation)),
    versions,
    heldBackBy: members
      .filter(({ generation }) => generation < newestGeneration)
      .map((member) => ({
        kind: member.kind,
        id: member.id,
        version: versionOf(member),
        generation: member.generation,
      })),
  };
}

/** "0.1.0 (3), 0.2.0 (2)" */
export const versionsText = ({ versions }: FleetView): string =>
  Object.entries(versions)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([version, count]) => `${version} (${count})`)
    .join(", ");

/** Names the first few processes that hold the generation back. */
export function heldBackText({ heldBackBy }: FleetView): string {
  const some = heldBackBy.slice(0, 3).map(({ kind, id, version }) => `${kind} ${id} (${version})`);
  const more = heldBackBy.length - some.length;
  return `${some.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
