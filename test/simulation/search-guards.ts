/**
 * Takes the guards of mutations.ts out, one at a time, and says by what that was noticed: by days on which the guard
 * matters, and by the scenario that was written for it. A guard whose absence nothing notices is no guard, or the days
 * are too good.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { recordProof } from "../support/documents/record-proof.ts";
import { type Mutation, mutations } from "./mutations.ts";
import { bundleDays } from "./search-bundle.ts";
import { type Range, search } from "./search-seeds.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

export async function searchWithoutGuards(
  folder: string,
  name: string,
  range: Range,
  record: boolean,
): Promise<number> {
  const chosen = mutations.filter((mutation) => name === "all" || mutation.name === name);
  if (chosen.length === 0) {
    console.log(`no guard named ${name}; there are: ${mutations.map((one) => one.name).join(", ")}`);
    return 2;
  }
  let unnoticed = 0;
  const rows = ["| guard | noticed by days | by its scenario |", "|---|---|---|"];
  for (const guard of chosen) {
    const seen = await byDays(folder, guard.name, range);
    const fails = await scenarioFails(guard);
    if (seen === undefined && !fails) unnoticed++;
    const days = seen ?? `not within ${range.seeds} seeds`;
    const scenario = fails ? `\`${scenarioName(guard)}\` fails` : "";
    rows.push(`| ${guard.name} | ${days} | ${scenario} |`);
    console.log(
      `  ${seen === undefined && !fails ? "UNNOTICED" : "noticed  "} ${guard.name}: ${days}; ${scenario}`,
    );
  }
  const table = rows.join("\n");
  console.log(table);
  if (record) await recordProof("guards", table);
  return unnoticed > 0 ? 1 : 0;
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

async function scenarioFails({ name, scenario }: Mutation): Promise<boolean> {
  if (scenario === undefined) return false;
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", scenario], {
    ...{ cwd: root, stdio: "ignore" },
    env: { ...process.env, HOLDFAST_WITHOUT: name },
  });
  return new Promise((resolve) => child.once("exit", (code) => resolve(code === 1)));
}
