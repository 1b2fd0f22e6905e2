/**
 * Known weaknesses from files: advisories in the OSV format (one JSON object a file), as the databases of GitHub and of
 * osv.dev are handed out for download. For machines that reach no registry.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Audit } from "./audit.ts";

const Event = z.object({
  introduced: z.string().optional(),
  fixed: z.string().optional(),
  last_affected: z.string().optional(),
});
export const Advisory = z.object({
  id: z.string(),
  withdrawn: z.string().optional(),
  summary: z.string().default(""),
  affected: z
    .array(
      z.object({
        package: z.object({ ecosystem: z.string(), name: z.string() }).optional(),
        ranges: z.array(z.object({ type: z.string(), events: z.array(Event) })).default([]),
        versions: z.array(z.string()).default([]),
      }),
    )
    .default([]),
  database_specific: z.object({ severity: z.string().optional() }).nullish(),
});
export type Advisory = z.infer<typeof Advisory>;

/** An advisory without a severity is one of a malicious package. */
const mild = ["LOW", "MODERATE", "MEDIUM"];

/** `place`: a file, or a folder with folders of files. */
export function readAdvisories(place: string): Advisory[] {
  if (statSync(place).isDirectory())
    return readdirSync(place, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() || entry.name.endsWith(".json") ? readAdvisories(join(place, entry.name)) : [],
    );
  return [Advisory.parse(JSON.parse(readFileSync(place, "utf8")))];
}

export function auditAgainst(
  advisories: readonly Advisory[],
  installed: readonly { name: string; version: string }[],
): Audit {
  if (advisories.length === 0) return { kind: "unanswered", why: "there are no advisories" };
  const findings = advisories.flatMap(({ id, withdrawn, summary, affected, database_specific }) => {
    const severity = database_specific?.severity?.toUpperCase() ?? "CRITICAL";
    if (withdrawn !== undefined || mild.includes(severity)) return [];
    return installed
      .filter((one) => affected.some((range) => concerns(range, one)))
      .map(({ name, version }) => `${severity.toLowerCase()}: ${name} ${version} (${id}: ${summary})`);
  });
  return findings.length === 0 ? { kind: "clean" } : { kind: "weak", findings: [...new Set(findings)] };
}

function concerns(
  { package: named, ranges, versions }: Advisory["affected"][number],
  { name, version }: { name: string; version: string },
): boolean {
  if (named?.ecosystem !== "npm" || named.name !== name) return false;
  return (
    versions.includes(version) ||
    ranges.some(({ type, events }) => type === "SEMVER" && isWithin(events, version))
  );
}

/** Events come in pairs, in order: a version is affected from `introduced` on, until `fixed` or past `last_affected`. */
function isWithin(events: readonly z.infer<typeof Event>[], version: string): boolean {
  let affected = false;
  for (const { introduced, fixed, last_affected: last } of events) {
    if (introduced !== undefined && (introduced === "0" || order(version, introduced) >= 0)) affected = true;
    if (fixed !== undefined && order(version, fixed) >= 0) affected = false;
    if (last !== undefined && order(version, last) > 0) affected = false;
  }
  return affected;
}

/** Below 0: `a` comes before `b` (semver 2.0, 11). */
export function order(a: string, b: string): number {
  const [[coreA, preA], [coreB, preB]] = [parts(a), parts(b)];
  const core = compared(coreA, coreB);
  if (core !== 0) return core;
  if (preA.length === 0 || preB.length === 0) return preB.length - preA.length;
  return compared(preA, preB);
}

function parts(version: string): [string[], string[]] {
  const [, core = "", pre] = /^v?([^-+]*)(?:-([^+]*))?/.exec(version) ?? [];
  return [core.split("."), pre === undefined ? [] : pre.split(".")];
}

function compared(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const [x, y] = [a[i], b[i]];
    if (x === undefined || y === undefined) return x === undefined ? -1 : 1;
    if (x === y) continue;
    const [m, n] = [Number(x), Number(y)];
    if (Number.isNaN(m) !== Number.isNaN(n)) return Number.isNaN(m) ? 1 : -1;
    if (Number.isNaN(m)) return x < y ? -1 : 1;
    if (m !== n) return m - n;
  }
  return 0;
}
