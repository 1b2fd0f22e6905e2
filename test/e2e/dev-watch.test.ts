/** `holdfast dev --watch`, in the application that `holdfast init` writes: code changes, instances go on. */
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Dev, repository, runCli, startDev, until } from "../support/processes/cli.ts";

let dir: string;
let dev: Dev;
let original: string;
const app = () => join(dir, "app.ts");
const cli = (...args: string[]) => runCli(args, { cwd: dir });
const said = (pattern: RegExp, what: string) =>
  until(() => pattern.test(dev.stderr()), what).catch((error) => {
    throw new Error(`${error.message}; dev said: ${dev.stderr()}`);
  });

/** Waits for a signal after its first step, so that code can change under it. */
const order = (steps: string) => `
export const order = defineOrchestration("order", {
  async run(ctx, word: string) {
    ${steps}
  },
});
`;
// biome-ignore-start lint/suspicious/noTemplateCurlyInString: programs
const first = order(
  'const n = await ctx.run(lengthOf, word); await ctx.waitForSignal("go"); return `${n} of the first`;',
);
const better = order(
  'const n = await ctx.run(lengthOf, word); await ctx.waitForSignal("go"); return `${n} of the second`;',
);
const other = order('await ctx.waitForSignal("go"); return `${await ctx.run(lengthOf, word)} of the other`;');
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: programs

beforeAll(async () => {
  dir = join(await mkdtemp(join(tmpdir(), "holdfast-watch-")), "shop");
  expect((await runCli(["init", dir])).code).toBe(0);
  // What npm install would put there.
  await symlink(join(repository, "node_modules"), join(dir, "node_modules"));
  original = await readFile(app(), "utf8");
  await writeFile(app(), original + first);
  const args = ["--app", "app.ts", "--watch", "--workers", "1"];
  dev = await startDev(join(dir, ".holdfast"), { cwd: dir, args });
});
afterAll(async () => {
  dev?.signal("SIGTERM");
  await dev?.ended();
  if (dir) await rm(join(dir, ".."), { recursive: true, force: true });
});

it("loads changed code, keeps instances running, and parks what no longer fits with the reason", async () => {
  const run = await cli("start", "measure", "--input", '{"words":["hold","fast"]}', "--wait");
  expect(run).toMatchObject({ code: 0, stdout: "8\n" });
  for (const id of ["o1", "o2"]) await cli("start", "order", "--id", id, "--input", '"book"');

  // Code that fits what is recorded: the instance that began before ends with it.
  await writeFile(app(), original + better);
  await said(/loaded in .*; 2 open instances meet it now/, "it is loaded");
  await cli("signal", "o1", "go");
  expect((await cli("result", "o1")).stdout).toContain("4 of the second");

  // Code that does not load: said, and the code from before goes on.
  await writeFile(app(), `${original + better}\nexport const broken = ;`);
  await said(/orchestrator did not start: .*\n.*\n? *The code from before goes on/, "it is refused");
  expect((await cli("start", "measure", "--input", '{"words":["a"]}', "--wait")).stdout).toBe("1\n");

  // Code that contradicts what is recorded: parked at once, though nothing has come for it.
  await writeFile(app(), original + other);
  await said(/o2 is parked: .*length-of.* \(nondeterminism\)\. To go on: deploy code that agrees/, "parked");
  expect((await cli("get", "o2")).stdout).toContain("parked");
  // The same id again starts nothing; waiting for it ends with the reason, not with a timeout.
  const waited = await cli("start", "order", "--id", "o2", "--input", '"book"', "--wait", "--timeout", "10m");
  expect(waited).toMatchObject({ code: 1, stdout: "" });
  expect(waited.stderr).toMatch(
    /o2 is parked, it cannot go on: .*length-of.* \(nondeterminism\)\n.*deploy code/,
  );

  await writeFile(app(), original + better);
  await said(/o2 was parked and goes on/, "it goes on");
  await cli("signal", "o2", "go");
  expect((await cli("result", "o2")).stdout).toContain("4 of the second");
}, 120_000);
