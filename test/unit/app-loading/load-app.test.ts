import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadApp } from "../../../shared/app-loading/load-app.ts";

const source = `import { defineActivity, defineOrchestration } from "holdfast";
export const greet = defineActivity("greet", { run: async (_ctx, name) => "hi " + name });
export const all = [defineOrchestration("hello", { run: async (ctx, name) => ctx.run(greet, name) })];
`;

const files: Record<string, string> = {
  "app.mjs": source,
  "part.ts": "export const suffix: string = '!';",
  "typed.ts": `import { z } from "zod";\nimport { suffix } from "./part.ts";\nexport const schema = z.string();\nexport const s: string = suffix;\n${source}`,
  "folder/app.ts": source,
  "broken.ts": "export const a: = 1;",
  "thrower.mjs": "throw new Error('no database\\nhere');",
  "missing.mjs": "import 'no-such-package';",
  "misspelt.mjs": `import { defineActivity } from "holdfast";
export const a = defineActivity("a", { run: () => 1, timeuot: "5s" });`,
  "empty.mjs": "export const a = 1;",
  "throws-inside.mjs": "import './thrower.mjs';",
};
const several: Record<string, string> = {
  "app.ts": `export { greet } from "./greet.ts";\nexport { hello } from "./flows/hello.js";`,
  "greet.ts": `import { defineActivity } from "holdfast";\nimport type { Greeting } from "./types";
    export const greet = defineActivity("greet", { run: async (_ctx, name: string): Promise<Greeting> => ({ name }) });`,
  "types.ts": "export interface Greeting { name: string }",
  "flows/hello.ts": `import { defineOrchestration } from "holdfast";\nimport { greet } from "../greet";
    export const hello = defineOrchestration("hello", { run: (ctx, name: string) => ctx.run(greet, name) });`,
};
const packages: Record<string, string | undefined> = {
  "no package.json": undefined,
  "an empty package.json": "{}",
  "what npm init writes": JSON.stringify({ name: "x", version: "1.0.0", main: "index.js", type: "commonjs" }),
  "type module": JSON.stringify({ type: "module" }),
};
const asked = [
  "app.mjs",
  "typed.ts",
  "folder",
  "nothing.ts",
  "broken.ts",
  "thrower.mjs",
  "missing.mjs",
  "misspelt.mjs",
  "empty.mjs",
  "throws-inside.mjs",
  ...Object.keys(packages),
];

describe("loadApp", () => {
  /** Outside the repository and without a package.json: nothing there can resolve "holdfast" by itself. */
  let dir: string;
  let outcomes: Map<string, unknown>;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "holdfast-app-"));
    await mkdir(join(dir, "folder"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
    for (const [folder, manifest] of Object.entries(packages)) {
      await mkdir(join(dir, folder, "flows"), { recursive: true });
      if (manifest !== undefined) await writeFile(join(dir, folder, "package.json"), manifest);
      for (const [name, text] of Object.entries(several)) await writeFile(join(dir, folder, name), text);
    }
    const child = resolve(import.meta.dirname, "../../support/processes/load-app-child.ts");
    const args = ["--import", "tsx", child, ...asked.map((name) => join(dir, name))];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const lines = stdout.trim().split("\n");
    outcomes = new Map(asked.map((name, index) => [name, JSON.parse(lines[index] ?? "null")]));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it.each(["app.mjs", "typed.ts", "folder"])("loads %s from a place that knows no holdfast", (name) => {
    expect(outcomes.get(name)).toEqual({ orchestrations: ["hello"], activities: ["greet"] });
  });

  it.each(Object.keys(packages))("defect 32: loads several files of TypeScript with %s", (folder) => {
    expect(outcomes.get(folder)).toEqual({ orchestrations: ["hello"], activities: ["greet"] });
  });

  it.each([
    ["nothing.ts", /^cannot load the application .*nothing.ts: there is no such file$/],
    ["broken.ts", /^cannot load the application .*broken.ts: .*broken.ts:1:16: ERROR: Unexpected "="$/],
    ["thrower.mjs", /thrower.mjs: no database \(.*\/thrower.mjs:1\)$/],
    ["misspelt.mjs", /activity "a" has no option "timeuot".* \(.*\/misspelt.mjs:2\)$/],
    ["missing.mjs", /missing.mjs: Cannot find package 'no-such-package' imported from .*missing.mjs$/],
    ["throws-inside.mjs", /throws-inside.mjs: no database \(.*\/thrower.mjs:1\)$/],
    ["empty.mjs", /empty.mjs exports no orchestrations, activities or session types$/],
  ])("says in one line what is wrong with %s", (name, message) => {
    expect(outcomes.get(name)).toEqual({
      code: expect.stringMatching(/^app_/),
      kind: "config",
      message: expect.stringMatching(message),
    });
  });

  it("asks for an application where none is given", async () => {
    await expect(loadApp(undefined)).rejects.toMatchObject({ code: "app_missing" });
  });
});
