/** What is installed, built from and run at installation is known and named. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { packageDir } from "../../services/version.ts";
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
