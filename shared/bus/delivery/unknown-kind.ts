/**
 * Decides whether a value refused by a schema is malformed or was written by a newer version (E1). It is
 * newer if its only problems are unknown names (a `kind`, a status, a reason) or a `v` greater than ours.
 */
import type { z } from "zod";

/** The unknown names, as in `result.kind "paused"`; undefined if the value is malformed. */
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

/** No branch of the union was tried, because none has that name. */
const isUndiscriminated = (issue: { errors: readonly unknown[] }): boolean => issue.errors.length === 0;

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  let here = value;
  for (const key of path) {
    if (typeof here !== "object" || here === null) return undefined;
    here = new Map<PropertyKey, unknown>(Object.entries(here)).get(String(key));
  }
  return here;
}
