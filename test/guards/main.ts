/**
 * `npm run test:guards [-- --only <part of a name>] [--record]`: takes out the guards of guards.ts, one at a time, and runs
 * the test of each, which must fail. Ends with 1 where one does not. `--record` writes their rows of the table in
 * docs/proof.md.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { recordProof } from "../support/documents/record-proof.ts";
import { accessGuards, type Guard } from "./guards.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The test that failed; undefined where all passed, and where none was run: a guard that breaks the file proves nothing. */
function failureWithout({ name, scenario }: Guard): Promise<string | undefined> {
  const args = ["node_modules/vitest/vitest.mjs", "run", scenario, "--bail", "1", "--reporter", "json"];
  const child = spawn(process.execPath, args, {
    ...{ cwd: root, stdio: ["ignore", "pipe", "inherit"] },
    env: { ...process.env, HOLDFAST_WITHOUT: name, NO_COLOR: "1" },
  });
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  return new Promise((resolve) => {
    child.once("close", () => {
      const [, failed] = /"status":"failed","title":"((?:[^"\\]|\\.)*)"/.exec(output) ?? [];
      resolve(failed);
    });
  });
}

const { values } = parseArgs({
  options: { only: { type: "string", default: "" }, record: { type: "boolean", default: false } },
});
const chosen = accessGuards.filter(({ name }) => name.includes(values.only));
const proof = readFileSync(new URL("../../docs/proof.md", import.meta.url), "utf8");
/** By the guard: what an earlier run has written. */
const rows = new Map(
  [...proof.matchAll(/^\| (.+?) \| .+? \| .*? \|$/gm)].map(([row, name]) => [name ?? "", row]),
);
let unnoticed = 0;
for (const guard of chosen) {
  const failure = await failureWithout(guard);
  if (failure === undefined) unnoticed++;
  console.log(
    `${failure === undefined ? "UNNOTICED" : "noticed  "} ${guard.name}: ${failure ?? guard.scenario}`,
  );
  const test = guard.scenario.replace(/^test\//, "").replace(/\.test\.ts$/, "");
  const noticed = failure === undefined ? "nothing" : `\`${test}\``;
  rows.set(guard.name, `| ${guard.name} | ${guard.law} | ${noticed} |`);
}
console.log(`${chosen.length - unnoticed} of ${chosen.length} guards were missed when they were gone`);
if (values.record) {
  const table = accessGuards.map(({ name, law }) => rows.get(name) ?? `| ${name} | ${law} | nothing |`);
  const head = ["| guard | law | fails without it |", "|---|---|---|"];
  await recordProof("access-guards", [...head, ...table].join("\n"));
}
process.exitCode = unnoticed > 0 ? 1 : 0;
