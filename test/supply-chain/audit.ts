/**
 * `npm audit` of what is installed with Holdfast. Fails on known weaknesses, `high` and above; a registry that has no such
 * answer, or that cannot be reached, is reported and fails nothing: a mirror must not stop everybody's work.
 *
 * Without a registry: `npm run audit -- --advisories <folder>`, or `HOLDFAST_ADVISORIES=<folder>`, compares the lock file
 * with advisories that were downloaded elsewhere (advisories.ts).
 */
import { execFile } from "node:child_process";
import { parseArgs } from "node:util";
import { z } from "zod";
import { auditAgainst, readAdvisories } from "./advisories.ts";
import { packages } from "./licences.ts";

const Report = z.object({
  vulnerabilities: z.record(
    z.string(),
    z.object({ name: z.string(), severity: z.string(), range: z.string(), fixAvailable: z.unknown() }),
  ),
});
const severe = ["high", "critical"];

export type Audit =
  | { kind: "clean" }
  | { kind: "weak"; findings: string[] }
  /** The registry did not answer. */
  | { kind: "unanswered"; why: string };

/** What `npm audit --json` wrote. */
export function readAudit(output: string): Audit {
  let value: unknown;
  try {
    value = JSON.parse(output);
  } catch {
    return { kind: "unanswered", why: output.trim().slice(0, 200) || "npm audit said nothing" };
  }
  const report = Report.safeParse(value);
  if (!report.success) {
    const { message } = z.looseObject({ message: z.string().default("not a report") }).parse(value);
    return { kind: "unanswered", why: message };
  }
  const findings = Object.values(report.data.vulnerabilities)
    .filter(({ severity }) => severe.includes(severity))
    .map(({ name, severity, range }) => `${severity}: ${name} ${range}`);
  return findings.length === 0 ? { kind: "clean" } : { kind: "weak", findings };
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const { values } = parseArgs({ options: { advisories: { type: "string" } } });
  const place = values.advisories ?? process.env.HOLDFAST_ADVISORIES;
  if (place === undefined)
    execFile("npm", ["audit", "--omit=dev", "--json"], { timeout: 60_000 }, (_, stdout) =>
      report(readAudit(stdout)),
    );
  else
    report(
      auditAgainst(
        readAdvisories(place),
        packages().filter(({ installed }) => installed),
      ),
    );
}

function report(audit: Audit): void {
  if (audit.kind === "clean") console.log("no known weakness, high or above, in what is installed");
  if (audit.kind === "unanswered") console.warn(`not audited: nobody answered (${audit.why})`);
  if (audit.kind !== "weak") return;
  for (const finding of audit.findings) console.error(finding);
  console.error("Update these packages (npm audit fix), or say in docs/security.md why they do no harm.");
  process.exitCode = 1;
}
