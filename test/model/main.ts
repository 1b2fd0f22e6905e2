/**
 * `npm run test:model`: every state of the two models, then each guard taken out, which must break a law. Needs Spin and a
 * C compiler; neither is part of `npm ci`.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const guards = {
  turns: [
    "FENCE",
    "APPLIED",
    "ORDER",
    "OWED_AFTER_FENCE",
    "OWED_AFTER_REDELIVERY",
    "ANCHOR",
    "INHERITED_ANCHOR",
    "LOOK_AFTER_LANE",
    "LOOK_AGAIN",
  ],
  sessions: ["CAS", "ONCE", "SEAT", "SELF_FENCE", "EPOCH"],
} as const;

interface Explored {
  errors: number;
  states: string;
  why: string;
  complete: boolean;
}

function explore(folder: string, model: string, without?: string): Explored {
  const file = fileURLToPath(new URL(`${model}.pml`, import.meta.url));
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: folder, encoding: "utf8", maxBuffer: 1 << 26 });
  run("spin", ...(without ? [`-DNO_${without}`] : []), "-a", file);
  run("cc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c");
  const said = run(join(folder, "pan"), "-m500000");
  return {
    errors: Number(/errors: (\d+)/.exec(said)?.[1] ?? Number.NaN),
    states: /(\d+) states, stored/.exec(said)?.[1] ?? "?",
    why: /pan:1: (.*)/.exec(said)?.[1] ?? "",
    complete: !said.includes("search depth too small") && !said.includes("Search not completed"),
  };
}

function main(): number {
  for (const [tool, get] of [
    ["spin", "apt-get install spin"],
    ["cc", "apt-get install gcc"],
  ] as const) {
    if (spawnSync(tool, [tool === "spin" ? "-V" : "--version"]).error === undefined) continue;
    console.log(`${tool} is not here. Debian and Ubuntu: ${get}. Others: https://spinroot.com`);
    return 2;
  }
  const folder = mkdtempSync(join(tmpdir(), "holdfast-model-"));
  let wrong = 0;
  for (const [model, removable] of Object.entries(guards)) {
    const { errors, states, why, complete } = explore(folder, model);
    const holds = errors === 0 && complete;
    if (!holds) wrong++;
    console.log(`${holds ? "holds" : "WRONG"}    ${model}: ${states} states${why && `: ${why}`}`);
    for (const guard of removable) {
      const found = explore(folder, model, guard);
      if (!(found.errors > 0)) wrong++;
      console.log(
        found.errors > 0
          ? `  noticed   ${model} without ${guard}: ${found.why.slice(0, 100)}`
          : `  UNNOTICED ${model} without ${guard}: ${found.states} states`,
      );
    }
  }
  rmSync(folder, { recursive: true });
  return wrong > 0 ? 1 : 0;
}

process.exitCode = main();
