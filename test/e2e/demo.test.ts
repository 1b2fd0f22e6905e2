/** What `npm start` and `npm run demo` run, with fewer mails. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { isAlive, repository, runCli, startDev, until } from "../support/processes/cli.ts";

const app = join(repository, "examples/app.ts");
const demo = join(repository, "examples/classify/demo.ts");
const input = JSON.stringify({ mails: 160, compared: 3 });
const small = ["--app", app, "--demo", demo, "--demo-input", input];

const Ready = z.object({
  pids: z.object({
    nats: z.int(),
    orchestrator: z.int(),
    watcher: z.int(),
    workers: z.array(z.int()),
    gateway: z.int().optional(),
  }),
});
const pidsIn = (line: string | undefined): number[] => {
  const { workers, ...others } = Ready.parse(JSON.parse(line ?? "")).pids;
  return [...workers, ...Object.values(others)];
};

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "holdfast-demo-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));
const dataDir = (name: string) => join(dir, name);

it("is what the scripts run", async () => {
  const { scripts } = JSON.parse(await readFile(join(repository, "package.json"), "utf8"));
  const command =
    "node build-once.mjs && exec node bin/holdfast.js dev --app examples/app.ts --demo examples/classify/demo.ts";
  expect(scripts).toMatchObject({ start: command, demo: `${command} --once` });
});

describe("once through", () => {
  it("classifies, survives the kill, counts, and leaves nothing running", async () => {
    const args = ["dev", "--json", "--once", "--data-dir", dataDir("once"), ...small];
    const { code, stdout, stderr } = await runCli(args);
    expect(code, stderr).toBe(0);
    const [ready, summary] = stdout.trimEnd().split("\n");
    const facts = JSON.parse(summary ?? "");
    expect(facts).toMatchObject({ documents: 160, modelLoads: 2, lossesSurvived: 1 });
    expect(facts.accuracy).toBeGreaterThan(0.93);
    expect(facts.coldToWarm).toBeGreaterThan(1.5);
    expect(facts.callsPerSecond).toBeGreaterThan(1);
    expect(facts.outageMs).toBeGreaterThan(0);
    expect(pidsIn(ready).filter(isAlive)).toEqual([]);
  }, 180_000);

  it("ends with 1 and the reason where the demo goes wrong", async () => {
    const broken = join(dir, "broken.ts");
    await writeFile(
      broken,
      `export const runDemo = async () => { throw new Error("as it should not be"); };`,
    );
    const args = ["dev", "--once", "--data-dir", dataDir("broken"), "--app", app, "--demo", broken];
    const { code, stdout, stderr } = await runCli(args);
    expect(stderr.trimEnd().split("\n").at(-1)).toBe("holdfast: as it should not be (error)");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });

  it("can be told to stop", async () => {
    const endless = join(dir, "endless.ts");
    await writeFile(endless, "export const runDemo = () => new Promise(() => undefined);");
    const dev = await startDev(dataDir("endless"), {
      cwd: dir,
      args: ["--once", "--app", app, "--demo", endless],
    });
    dev.signal("SIGTERM");
    expect(await dev.ended()).toBe(130);
    expect(dev.stderr()).toContain("stopped before the demo was over");
    expect(dev.allPids().filter(isAlive)).toEqual([]);
  });

  it.each([
    [["--once"], "--once needs --demo <module>"],
    [["--demo-input", "1"], "--demo-input needs --demo <module>"],
    [["--demo", app], "exports no function runDemo"],
    [["--demo", "/nowhere.ts"], "there is no such file"],
    [["--demo", demo, "--demo-input", "{"], "--demo-input is not JSON"],
  ])("refuses %o before anything is started", async (args, complaint) => {
    const { code, stderr } = await runCli(["dev", "--data-dir", dataDir("none"), "--app", app, ...args]);
    expect(stderr).toContain(complaint);
    expect(code).toBe(2);
  });
});

it("keeps serving all examples afterwards, also where the demo refused its input", async () => {
  const at = dataDir("start");
  const dev = await startDev(at, {
    cwd: dir,
    args: ["--app", app, "--demo", demo, "--demo-input", '{"mails":1}'],
  });
  const start = (...args: string[]) => runCli(["start", ...args, "--wait", "--data-dir", at]);
  expect(await start("hello", "--input", '{"name":"Ada"}')).toMatchObject({ stdout: '"Hello, Ada!"\n' });
  expect(await start("steps", "--input", '{"n":3}')).toMatchObject({ stdout: "3\n" });
  const documents = '{"documents":["You have WON a FREE prize, click here!!!"]}';
  const { stdout } = await start("classify-documents", "--input", documents);
  expect(JSON.parse(stdout)).toMatchObject({ labels: [{ label: "spam" }] });
  const pids = dev.allPids();
  dev.signal("SIGINT");
  expect(await dev.ended()).toBe(0);
  await until(() => !pids.some(isAlive), "everything is gone");
}, 120_000);
