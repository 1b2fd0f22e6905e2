/** What is installed, built from and run at installation is known and named. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageDir } from "../../services/version.ts";
import { auditAgainst, readAdvisories } from "../supply-chain/advisories.ts";
import { readAudit } from "../supply-chain/audit.ts";
import { imagesIn } from "../supply-chain/images.ts";
import { installScripts } from "../supply-chain/install-scripts.ts";
import { isAccepted, licencePage, packages } from "../supply-chain/licences.ts";
import { readLockfile } from "../support/documents/complete-lockfile.ts";

const text = (name: string): string => readFileSync(`${packageDir()}/${name}`, "utf8");

test("every package that wants to run a script at installation is named; none does", () => {
  const wanting = Object.entries(readLockfile().packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length));
  expect([...new Set(wanting)].sort()).toEqual(Object.keys(installScripts).sort());
  expect(text(".npmrc")).toMatch(/^ignore-scripts=true$/m);
});

test("every stage of the image installs by the lock file, without scripts but the one that is named", () => {
  const dockerfile = text("Dockerfile");
  const installs = [...dockerfile.matchAll(/npm (?:ci|install|i|add)\b[^&\n]*/g)].map(([found]) => found);
  expect(installs.length).toBeGreaterThan(2);
  for (const install of installs) expect(install).toMatch(/^npm ci --ignore-scripts/);
  expect(dockerfile.match(/script\/install\.js/g)).toHaveLength(1);
});

test("an image is named alike wherever it is named, and once one has its digest all have: npm run images", () => {
  const files = ["Dockerfile", "compose.yaml", "services/deployment.ts", ".env.example"];
  const named = imagesIn(files.map(text).join("\n"));
  expect(named.length).toBeGreaterThan(3);
  const pinnedOnes = named.filter((image) => image.includes("@sha256:"));
  expect([0, named.length]).toContain(pinnedOnes.length);
  for (const image of named.filter((one) => one.startsWith("nats:")))
    for (const file of files.slice(1)) expect(text(file), file).toContain(image);
});

test("every licence is one that Holdfast accepts, and docs/licences.md lists them: npm run docs:licences", () => {
  expect(packages().filter((one) => !isAccepted(one))).toEqual([]);
  expect(text("docs/licences.md")).toBe(licencePage());
});

test("an audit fails on what is known, and not on a registry without an answer", () => {
  const finding = { name: "left-pad", range: "<1", fixAvailable: true };
  const report = (severity: string) =>
    JSON.stringify({ vulnerabilities: { "left-pad": { ...finding, severity } } });
  expect(readAudit(report("high"))).toEqual({ kind: "weak", findings: ["high: left-pad <1"] });
  expect(readAudit(report("low"))).toEqual({ kind: "clean" });
  expect(readAudit(JSON.stringify({ message: "405 Method Not Allowed", error: {} }))).toEqual({
    kind: "unanswered",
    why: "405 Method Not Allowed",
  });
  expect(readAudit("")).toMatchObject({ kind: "unanswered" });
});

test("an audit without a registry compares versions with advisories in files", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-advisories-"));
  const range = (...events: object[]) => [{ type: "SEMVER", events }];
  const advisory = (id: string, ranges: object[], more: object = {}) => {
    const affected = [{ package: { ecosystem: "npm", name: "left-pad" }, ranges }];
    mkdirSync(join(folder, id));
    const text = JSON.stringify({
      id,
      summary: "s",
      affected,
      database_specific: { severity: "HIGH" },
      ...more,
    });
    writeFileSync(join(folder, id, `${id}.json`), text);
  };
  const audit = (version: string, name = "left-pad") =>
    auditAgainst(readAdvisories(folder), [{ name, version }]);
  expect(audit("1.0.0")).toMatchObject({ kind: "unanswered" });
  advisory(
    "A",
    range({ introduced: "0" }, { fixed: "1.2.0" }, { introduced: "2.0.0-beta" }, { fixed: "2.0.10" }),
  );
  advisory("B", range({ introduced: "3.0.0" }, { last_affected: "3.1.0" }), { database_specific: null });
  advisory("C", range({ introduced: "0" }), { withdrawn: "2026-01-01T00:00:00Z" });
  advisory("D", range({ introduced: "0" }), { database_specific: { severity: "MODERATE" } });
  expect(audit("1.1.9")).toEqual({ kind: "weak", findings: ["high: left-pad 1.1.9 (A: s)"] });
  for (const version of ["1.2.0-rc.1", "2.0.0-beta.2", "2.0.9"])
    expect(audit(version).kind, version).toBe("weak");
  expect(audit("3.1.0"), "malicious: it has no severity").toMatchObject({ kind: "weak" });
  for (const version of ["1.2.0", "1.10.0", "2.0.0-alpha", "2.0.10", "3.1.1"])
    expect(audit(version).kind, version).toBe("clean");
  expect(audit("1.0.0", "right-pad")).toEqual({ kind: "clean" });
});
