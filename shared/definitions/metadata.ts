/** Checks changes to a session's metadata: names and values that users attach to it. */
import { changedMetadata, type MetadataChange, ownMetadataPrefix } from "../../schemas/index.ts";
import { HoldfastError } from "../errors/index.ts";

const mostNames = 64;
const longestName = 128;
const longestValue = 1024;

/** Returns the checked change and the metadata after it. Throws `invalid_metadata`, and the message names the rule. */
export function requireMetadata(
  before: Readonly<Record<string, string>>,
  change: unknown,
): { change: MetadataChange; after: Record<string, string> } {
  if (typeof change !== "object" || change === null || Array.isArray(change))
    throw refused("must be an object of names and values");
  const checked: [string, string | null][] = Object.entries(change).map(([name, value]) => {
    const shown = JSON.stringify(name.slice(0, longestName));
    if (name === "" || name.length > longestName)
      throw refused(`the name ${shown} must have 1 to ${longestName} characters`);
    if (name.startsWith(ownMetadataPrefix))
      throw refused(
        `the name ${shown} is reserved for the engine: choose one without "${ownMetadataPrefix}"`,
      );
    if (value !== null && typeof value !== "string")
      throw refused(`the value of ${shown} must be a string, or null to remove the name`);
    if (value !== null && value.length > longestValue)
      throw refused(`the value of ${shown} is longer than ${longestValue} characters`);
    return [name, value];
  });
  const made = Object.fromEntries(checked);
  const after = changedMetadata(before, made);
  if (Object.keys(after).length > Math.max(mostNames, Object.keys(before).length))
    throw refused(`a session has at most ${mostNames} names`);
  return { change: made, after };
}

const refused = (why: string): HoldfastError =>
  new HoldfastError({ code: "invalid_metadata", message: `metadata of a session: ${why}` });
