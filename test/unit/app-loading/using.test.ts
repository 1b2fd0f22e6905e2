/** Defect 31: `using` in a loop means what the language says, with every compiler. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { correctUsing, isMiscompiled } from "../../../shared/app-loading/correct-using.ts";
import { refuseMiscompiled } from "../../../shared/app-loading/refuse-miscompiled.ts";
import { call, collectApp, defineActivity, defineSession } from "../../../shared/definitions/index.ts";
import { TestEnvironment } from "../../../shared/testing/index.ts";

const source = `
export async function retried(): Promise<unknown> {
  const log: string[] = [];
  let opened = 0;
  const open = async () => {
    const n = ++opened;
    return { n, async [Symbol.asyncDispose]() { log.push("closed " + n); } };
  };
  for (;;) {
    try {
      await using session = await open();
      if (session.n < 3) throw new Error("lost " + session.n);
      return [session.n, log];
    } catch (error) {
      log.push(String(error));
      if (opened > 5) return ["ran finished work again", log];
    }
  }
}
export function plain(): unknown {
  const log: string[] = [];
  for (const n of [1, 2, 3]) {
    try {
      using one = { [Symbol.dispose]() { log.push("closed " + n); } };
      using two = { [Symbol.dispose]() { if (n === 1) throw new Error("close " + n); } };
      if (n === 2) continue;
      log.push("used " + n + typeof one + typeof two);
    } catch (error) {
      log.push(String(error));
    }
  }
  return log;
}
`;
const right = {
  retried: [3, ["closed 1", "Error: lost 1", "closed 2", "Error: lost 2", "closed 3"]],
  plain: [
    ...["used 1objectobject", "closed 1", "Error: close 1"],
    ...["closed 2", "used 3objectobject", "closed 3"],
  ],
};

describe("defect 31", () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "holdfast-using-"));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  const run = async (file: string): Promise<unknown> => {
    const child = resolve(import.meta.dirname, "../../support/processes/call-module-child.ts");
    const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", child, file]);
    return JSON.parse(stdout);
  };

  it("defect 31: TypeScript is loaded as written", async () => {
    const file = join(dir, "written.ts");
    await writeFile(file, source);
    expect(await run(file)).toEqual(right);
  });

  it.each([
    ["readable", {}],
    ["without blanks", { minifyWhitespace: true }],
    ["minified", { minify: true }],
  ])("a build of esbuild's, %s, is mended when it is loaded", async (how, options) => {
    const { code } = await transform(source, { loader: "ts", format: "esm", target: "node20", ...options });
    expect(correctUsing(code)).not.toBe(code);
    if (how !== "minified") expect(correctUsing(code)).toHaveLength(code.length);
    const file = join(dir, `built-${how.replaceAll(" ", "-")}.mjs`);
    await writeFile(file, code);
    expect(await run(file)).toEqual(right);
  });

  it("refuses what it cannot mend: functions that did not come by the loader", async () => {
    const { code } = await transform("for (;;) { using s = f(); }", { loader: "ts", target: "node20" });
    const broken = { ...defineActivity("broken", { run: async () => 0 }), run: new Function(code) };
    expect(() => refuseMiscompiled(collectApp({ broken }), "app.cjs")).toThrow(
      /app.cjs: "broken" was compiled/,
    );
    // Also in the code of sessions, and where a test runner compiled it.
    const run = new Function(code) as () => number;
    const holds = defineSession("holds", { init: () => ({}), calls: { bad: call({ run }) } });
    expect(() => refuseMiscompiled(collectApp({ holds }), "app.cjs")).toThrow(/"holds.bad" was compiled/);
    const begins = defineSession("begins", { init: run, calls: {} });
    await expect(TestEnvironment.create({ app: { begins } })).rejects.toThrow(/"begins" was compiled/);
  });

  it("tells what is broken from what is not", async () => {
    const compile = async (body: string) =>
      (await transform(`async () => { ${body} }`, { loader: "ts", target: "node20" })).code;
    expect(isMiscompiled(await compile("for (;;) { try { await using s = f(); } catch {} }"))).toBe(true);
    expect(isMiscompiled(await compile("while (a) { if (b) { using s = f(); } }"))).toBe(true);
    expect(isMiscompiled(await compile("do { using s = f(); } while (a)"))).toBe(true);
    expect(isMiscompiled(await compile("for (;;) { g(); } using s = f();"))).toBe(false);
    expect(isMiscompiled(await compile("for (;;) { g(() => { using s = f(); }); }"))).toBe(false);
    expect(isMiscompiled(correctUsing(await compile("for (;;) { using s = f(); }")))).toBe(false);
  });
});
