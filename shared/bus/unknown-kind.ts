/**
 * What a schema refused: something malformed, or something a newer version wrote (E1)? It is newer where nothing is wrong
 * with it but names that are not on our lists: a `kind`, a status, a reason; or a `v` beyond ours.
 */
import type { z } from "zod";

/** The names we do not know, as in `result.kind "paused"`; undefined where it is malformed. */
export function unknownKinds(error: z.ZodError, value: unknown): string | undefined {
  const found: string[] = [];
  for (const issue of error.issues) {
    const listed =
      issue.code === "invalid_value" || (issue.code === "invalid_union" && isUndiscriminated(issue));
    const named = listed ? at(value, issue.path) : undefined;
    const isVersion = issue.path.at(-1) === "v" && typeof named === "number" && named > 1;
    if (typeof named !== "string" && !isVersion) return undefined;
    found.push(`${issue.path.map(String).join(".")} ${JSON.stringify(named)}`);
  }
  return found.length > 0 ? found.join(", ") : undefined;
}

/** No branch was tried, because none is for that name. */
const isUndiscriminated = (issue: { errors: readonly unknown[] }): boolean => issue.errors.length === 0;

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  let here = value;
  for (const key of path) {
    if (typeof here !== "object" || here === null) return undefined;
    here = new Map<PropertyKey, unknown>(Object.entries(here)).get(String(key));
  }
  return here;
}
