/**
 * Generations of what is on the wire (E1). A generation is a set of fields and kinds that an earlier version does not
 * write; see schemas/README.md for how one is added.
 */

/** The newest this version can read and write. */
export const newestGeneration = 2;

/** What a version that does not say it can read: 0.1.0, whose schemas refuse every field they do not know. */
export const firstGeneration = 1;

/**
 * On the entries by which services and workers say that they are alive. In headers, because 0.1.0 skips an entry with a
 * field it does not know, and would place no session on such a worker.
 */
export const generationHeader = "Holdfast-Generation";
/** The header with the version of the process that wrote a message. */
export const versionHeader = "Holdfast-Version";

/** On a message of a kind that came with a later generation than the first: who is older leaves it to a newer one. */
export const needsHeader = "Holdfast-Needs";

/** Why something is left to a newer process. */
export const needsNewerVersion = "needs_newer_version";

/** Undefined: we know it. Otherwise what people are told. */
export function whyNewer(needs: unknown): string | undefined {
  const generation = Number(needs);
  if (!Number.isSafeInteger(generation) || generation <= newestGeneration) return undefined;
  return `needs a version that knows generation ${generation} or later; this one knows ${newestGeneration}`;
}
