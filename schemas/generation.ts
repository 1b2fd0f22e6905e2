/**
 * Generations of what is on the wire (E1). A generation is a set of fields and kinds that an earlier version does not
 * write; see schemas/README.md for how one is added.
 */

/** The newest generation that this version reads and writes. */
export const newestGeneration = 2;

/** The generation of a process that announces none: 0.1.0, whose schemas refuse every unknown field. */
export const firstGeneration = 1;

/**
 * Header on the register entries of services and workers: the generation they read. It is a header because
 * 0.1.0 skips an entry with an unknown field, and would place no session on such a worker.
 */
export const generationHeader = "Holdfast-Generation";
/** The header with the version of the process that wrote a message. */
export const versionHeader = "Holdfast-Version";

/** Header on a message of a kind newer than the first generation: an older process leaves it to a newer one. */
export const needsHeader = "Holdfast-Needs";

/** The error code of a message or an instance that is left to a newer process. */
export const needsNewerVersion = "needs_newer_version";

/** Returns undefined if this version can read the generation; otherwise says which version can. */
export function whyNewer(needs: unknown): string | undefined {
  const generation = Number(needs);
  if (!Number.isSafeInteger(generation) || generation <= newestGeneration) return undefined;
  return `needs a version that knows generation ${generation} or later; this one knows ${newestGeneration}`;
}
