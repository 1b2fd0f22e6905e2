/**
 * Takes the guards of mutations.ts out, one at a time, and says by what that was noticed: by days on which the guard
 * matters, and by the scenario that was written for it. A guard whose absence nothing notices is no guard, or the days
 * are too good.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { provedBy, recordProof } from "../support/documents/record-proof.ts";
import { type Mutation, mutations } from "./mutations.ts";
import { bundleDays } from "./search-bundle.ts";
import { type Range, search } from "./search-seeds.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** `names`: some guards, separated by commas, or `all`. Recorded, the rows of other guards stay as they are. */
export async function searchWithoutGuards(
  folder: string,
  names: string,
  range: Range,
  record: boolean,
): Promise<number> {
  const asked = names.split(",").map((name) => name.trim());
  const chosen = mutations.filter(({ name }) => names === "all" || asked.includes(name));
  if (names !== "all" && chosen.length < asked.length) {
    console.log(`no guards named ${names}; there are: ${mutations.map((one) => one.name).join(", ")}`);
    return 2;
  }
  let unnoticed = 0;
  const rows = new Map<string, string>();
  for (const guard of chosen) {
    const seen = await byDays(folder, guard.name, range);
    const fails = await scenarioFails(folder, guard);
    if (seen === undefined && !fails) unnoticed++;
    const days = seen ?? `not within ${range.seeds} seeds`;
    const scenario = fails ? `\`${scenarioName(guard)}\` fails` : "";
    rows.set(guard.name, `| ${guard.name} | ${days} | ${scenario} |`);
    console.log(
      `  ${seen === undefined && !fails ? "UNNOTICED" : "noticed  "} ${guard.name}: ${days}; ${scenario}`,
    );
  }
  console.log([...rows.values()].join("\n"));
  if (record) await recordProof("guards", [...heading, ...withOthers(rows)].join("\n"));
  return unnoticed > 0 ? 1 : 0;
}

const heading = ["| guard | noticed by days | by its scenario |", "|---|---|---|"];

/** The rows of all guards, in the order of the list; of one that was not taken out now, what is recorded of it. */
function withOthers(rows: ReadonlyMap<string, string>): string[] {
  const recorded = provedBy("guards").split("\n");
  return mutations.flatMap(
    ({ name }) => rows.get(name) ?? recorded.find((row) => row.startsWith(`| ${name} |`)) ?? [],
  );
}

/** Undefined where they notice nothing. */
async function byDays(folder: string, guard: string, range: Range): Promise<string | undefined> {
  const file = await bundleDays(folder, guard);
  const found = await search(file, { ...range, guard }, ({ violations }) => violations.length > 0);
  const [violation] = found.violations;
  if (violation === undefined) return undefined;
  console.log(`  ${guard}: ${violation.split("\n")[0]?.slice(0, 160)}`);
  return `within ${found.seeds} seed${found.seeds === 1 ? "" : "s"} from ${range.first}`;
}

const scenarioName = ({ scenario }: Mutation): string =>
  scenario?.replace(/^test\//, "").replace(/\.test\.ts$/, "") ?? "";

/** Not where the scenario cannot be run at all: then nothing was noticed. */
async function scenarioFails(folder: string, { name, scenario }: Mutation): Promise<boolean> {
  if (scenario === undefined) return false;
  const outputFile = join(folder, "scenario.json");
  const vitest = ["node_modules/vitest/vitest.mjs", "run", scenario, "--reporter=json"];
  const child = spawn(process.execPath, [...vitest, `--outputFile=${outputFile}`], {
    ...{ cwd: root, stdio: "ignore" },
    env: { ...process.env, HOLDFAST_WITHOUT: name },
  });
  await new Promise((resolve) => child.once("exit", resolve));
  const { numTotalTests, numFailedTests } = Outcome.parse(JSON.parse(readFileSync(outputFile, "utf8")));
  if (numTotalTests === 0) throw new Error(`${scenario} was not run without "${name}"`);
  return numFailedTests > 0;
}

const Outcome = z.object({ numTotalTests: z.number(), numFailedTests: z.number() });
