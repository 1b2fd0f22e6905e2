/**
 * The command line from outside: one `holdfast dev`, and every verb against it. `dev` and what it starts are real
 * processes; most verbs run in this one, because starting Node forty times is most of what the test would measure.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as basics from "../../../examples/basics/app.ts";
import { main } from "../../../services/cli/main.ts";
import { shapes } from "../../../services/cli/reference/shapes.ts";
import { expectReplay } from "../../../shared/testing/index.ts";
import {
  basicsApp,
  bin,
  type Dev,
  type Finished,
  isAlive,
  runCli,
  startDev,
  until,
} from "../../support/processes/cli.ts";

const tempDir = () => mkdtemp(join(tmpdir(), "holdfast-dev-"));
/** Those that were started there; every child of a `dev` is. */
const processesIn = async (folder: string): Promise<string[]> => {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => "")));
  return pids.filter((_, index) => folders[index] === folder);
};
const none = (pids: number[]) => () => !pids.some(isAlive);

describe("holdfast dev and the verbs", () => {
  let dir: string;
  let dev: Dev;
  const cli = async (...args: string[]): Promise<Finished> => {
    const finished: Finished = { code: null, stdout: "", stderr: "" };
    finished.code = await main(
      [...args, "--data-dir", dir],
      {},
      {
        stdout: { write: (text: string) => (finished.stdout += text) },
        stderr: { write: (text: string) => (finished.stderr += text) },
      },
    );
    return finished;
  };
  const json = async (...args: string[]) => JSON.parse((await cli(...args, "--json")).stdout);

  beforeAll(async () => {
    dir = await tempDir();
    dev = await startDev(dir);
  });
  afterAll(async () => {
    if (dev && isAlive(dev.pid)) {
      dev.signal("SIGKILL");
      await until(none(dev.allPids()), "everything is gone");
    }
    await rm(dir, { recursive: true, force: true });
  });

  it("says in one line that it is ready, and which processes there are", () => {
    expect(dev.ready).toMatchObject({
      ready: true,
      natsUrl: expect.stringMatching(/^nats:\/\/127\.0\.0\.1:\d+$/),
      pids: { workers: [expect.any(Number), expect.any(Number)] },
    });
    for (const pid of dev.allPids()) expect(isAlive(pid)).toBe(true);
  });

  it("is still found when another on its folder was refused", async () => {
    const second = await runCli(["dev", "--app", basicsApp, "--data-dir", dir, "--json"]);
    expect(second.code).toBe(5);
    expect(second.stderr).toContain("is in use by the live process");
    expect(second.stderr).toContain("--data-dir");
    const file = join(dir, "file");
    await writeFile(file, "");
    const unusable = await runCli(["dev", "--app", basicsApp, "--data-dir", file, "--json"]);
    expect(unusable.code).toBe(2);
    expect(JSON.parse(unusable.stderr).error).toMatchObject({ code: "data_dir_unusable" });
    expect((await cli("list")).code).toBe(0);
  });

  it("starts, waits and prints as a process of its own", async () => {
    const args = ["start", "hello", "--input", '{"name":"Ada"}', "--wait", "--data-dir", dir];
    expect(await runCli(args)).toEqual({ code: 0, stdout: '"Hello, Ada!"\n', stderr: "" });
    expect(await runCli(["get", "ghost", "--data-dir", dir])).toEqual({
      code: 3,
      stdout: "",
      stderr:
        "holdfast: there is no instance ghost (instance_not_found)\n" +
        "  `holdfast list` shows the instances there are.\n",
    });
  });

  it.each([
    ["hello", { name: "Ada" }, "Hello, Ada!"],
    ["steps", { n: 5 }, 5],
    ["fan-out", { n: 50 }, 1225],
  ])("runs %s %o", async (name, input, output) => {
    const finished = await cli("start", name, "--input", JSON.stringify(input), "--wait", "--timeout", "30s");
    expect(finished).toMatchObject({ code: 0, stdout: `${JSON.stringify(output)}\n` });
  });

  it("says that nobody serves a name, and starts nothing", async () => {
    const refused = await cli("start", "nosuch", "--id", "nosuch-1");
    expect(refused).toMatchObject({ code: 3, stdout: "" });
    expect(refused.stderr).toContain('no orchestrator serves an orchestration named "nosuch"');
    expect(refused.stderr).toContain("hello");
    expect((await cli("get", "nosuch-1")).code).toBe(3);
  });

  it("sleeps as long as it was told", async () => {
    const { output } = await json("start", "sleepy", "--input", '{"ms":300}', "--wait", "--timeout", "30s");
    expect(output).toBeGreaterThanOrEqual(300);
  });

  it("starts, signals and gets the result in separate commands", async () => {
    expect(await cli("start", "wait-for-signal", "--id", "w1")).toMatchObject({ code: 0, stdout: "w1\n" });
    expect(await cli("start", "wait-for-signal", "--id", "w1")).toMatchObject({ code: 0, stdout: "w1\n" });
    const early = await cli("result", "w1", "--timeout", "50ms");
    expect(early).toMatchObject({ code: 4, stdout: "" });
    expect(await json("signal", "w1", "go", '{"n":[1]}')).toEqual({ ok: true });
    expect(await json("result", "w1")).toMatchObject({ status: "completed", output: { n: [1] } });
    const late = await cli("signal", "w1", "go");
    expect(late).toMatchObject({ code: 1, stdout: "" });
    expect(late.stderr).toContain("instance w1 has ended (completed)");
    const lines = (await cli("history", "w1", "--jsonl")).stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).kind)).toEqual([
      "instance.started",
      "signal.received",
      "instance.completed",
    ]);
    expect((await cli("history", "w1")).stdout).toContain("signal.received");
    expect((await cli("get", "w1")).stdout).toMatch(
      /^id +w1\norchestration +wait-for-signal\nstatus +completed/,
    );
  });

  it("asks the code of an instance", async () => {
    await cli("start", "cart", "--id", "c1");
    const pen = '{"name":"pen","price":2}';
    expect(await json("update", "c1", "add", pen, "--id", "u1")).toEqual({ updateId: "u1", answer: 1 });
    expect(await cli("update", "c1", "add", pen, "--id", "u1")).toMatchObject({ code: 0, stdout: "1\n" });
    expect(await cli("update", "c1", "add", pen)).toMatchObject({ code: 1 });
    expect(await cli("update", "c1", "add", '{"name":1}')).toMatchObject({ code: 2 });
    expect(await json("query", "c1", "contents")).toHaveLength(1);
    expect(await cli("query", "c1", "contents", '{"above":5}')).toMatchObject({ code: 0, stdout: "[]\n" });
    const unknown = await cli("query", "c1", "nope");
    expect(unknown).toMatchObject({ code: 3, stderr: expect.stringContaining("there is: contents") });
    expect(await cli("query", "ghost", "contents")).toMatchObject({ code: 3 });
  });

  it("starts under limits and after a delay", async () => {
    const start = (...more: string[]) => cli("start", "hello", "--input", '{"name":"Ada"}', ...more);
    const one = ["--flow", '{"key":"k","concurrency":1}', "--delay", "10ms", "--wait"];
    expect(await start("--id", "limited", ...one)).toMatchObject({ code: 0, stdout: '"Hello, Ada!"\n' });
    for (const [option, value, named] of [
      ["--flow", '{"key":"k","concurrency":0}', "flow.concurrency"],
      ["--flow", '{"key":"k","singelton":true}', 'did you mean "singleton"?'],
      ["--flow", "{nope", "--flow"],
      ["--delay", "-5s", "--delay"],
    ] as const) {
      expect(await start(`${option}=${value}`)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(named),
      });
    }
  });

  it("takes a signal before the start, and input from stdin", async () => {
    await cli("signal", "early", "go", '"first"');
    const args = ["start", "wait-for-signal", "--id", "early", "--input", "-", "--wait", "--data-dir", dir];
    expect(await runCli(args, { input: "null" })).toMatchObject({ code: 0, stdout: '"first"\n' });
  });

  it("cancels and terminates", async () => {
    for (const [verb, status, ...more] of [
      ["cancel", "cancelled"],
      ["terminate", "terminated", "--yes"],
    ] as const) {
      await cli("start", "wait-for-signal", "--id", verb);
      expect((await cli(verb, verb, "--reason", "enough", ...more)).code).toBe(0);
      const result = await cli("result", verb, "--json", "--timeout", "20s");
      expect(result.code).toBe(1);
      expect(JSON.parse(result.stdout)).toMatchObject({ status });
    }
  });

  it("lists", async () => {
    const running = await json("start", "wait-for-signal", "--id", "listed");
    await until(async () => (await json("get", "listed")).status === "running", "it runs");
    const found = await json("list", "--status", "running", "--name", "wait-for-signal");
    expect(found.map((view: { instanceId: string }) => view.instanceId)).toContain(running.instanceId);
    expect((await cli("list", "--id-prefix", "listed")).stdout).toMatch(
      /^ID.*\nlisted +wait-for-signal +running/,
    );
    expect(await json("list", "--id-prefix", "no-such")).toEqual([]);
  });

  it("explains what failed, with exit codes that mean something", async () => {
    const bad = await cli("start", "hello", "--input", '{"nam":1}', "--wait", "--timeout", "20s");
    expect(bad).toMatchObject({ code: 1, stdout: "" });
    expect(bad.stderr).toMatch(/name: .*\(invalid_input\)/);
    const unknown = await cli("start", "nope", "--wait", "--timeout", "20s");
    expect(unknown.stderr).toMatch(/hello, .*sleepy, steps.*\(unknown_orchestration\)/);
    for (const verb of ["get", "result", "history", "cancel", "terminate"]) {
      const more = verb === "terminate" ? ["--yes"] : [];
      expect(await cli(verb, "ghost", ...more)).toMatchObject({ code: 3, stdout: "" });
    }
    expect(await cli("get", "a.b")).toMatchObject({ code: 2, stdout: "" });
  });

  it("keeps what an instance has done as a test", async () => {
    await cli("start", "steps", "--id", "recorded", "--input", '{"n":1}', "--wait", "--timeout", "30s");
    const record = ["record-test", "recorded", "--app", "./app.ts", "--runner", "node:test", "--out", dir];
    const paths = [join(dir, "recorded.history.json"), join(dir, "recorded.test.ts")];
    expect((await cli(...record)).stdout).toBe(`${paths.join("\n")}\n`);
    expect(await readFile(paths[1] ?? "", "utf8")).toContain('import { test } from "node:test";');
    await expectReplay(basics, JSON.parse(await readFile(paths[0] ?? "", "utf8")));
    expect(await cli(...record)).toMatchObject({ code: 2, stderr: expect.stringContaining("--force") });
    expect(await cli(...record, "--force", "--runner", "mocha")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("vitest, jest, node:test"),
    });
  });

  it("replays a history from its file and by its id, and names the first disagreement", async () => {
    await cli("start", "steps", "--id", "replayed", "--input", '{"n":3}', "--wait", "--timeout", "30s");
    const file = join(dir, "replayed.json");
    await writeFile(file, (await cli("history", "replayed", "--export")).stdout);
    const agrees = "replayed: the code agrees with 8 events of 1 execution\n";
    expect(await runCli(["replay", file, "--app", basicsApp])).toEqual({
      code: 0,
      stdout: agrees,
      stderr: "",
    });
    const byId = await runCli(["replay", "replayed", "--app", basicsApp, "--data-dir", dir, "--json"]);
    expect(byId.code).toBe(0);
    expect(shapes.replay?.json?.parse(JSON.parse(byId.stdout))).toMatchObject({ kind: "agrees", events: 8 });
    await writeFile(
      join(dir, "changed.ts"),
      `import { defineOrchestration } from "holdfast";
       export const steps = defineOrchestration("steps", {
         run: async (ctx) => { await ctx.sleep(5); return 0; } });`,
    );
    const changed = await runCli(["replay", "-", "--app", join(dir, "changed.ts")], {
      input: await readFile(file, "utf8"),
    });
    expect(changed).toMatchObject({ code: 1, stderr: "" });
    expect(changed.stdout).toMatch(
      /^replayed: history has activity "step" on queue "default" \(event 2\), the code issued a timer \(nondeterminism\)\n {2}in execution 1, event 2\n {2}Deploy code/,
    );
    await writeFile(file, "[]");
    expect(await runCli(["replay", file, "--app", basicsApp])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is not a history"),
    });
    expect((await runCli(["replay", "replayed"])).stderr).toContain("no application given");
  });

  it("is well, says the doctor", async () => {
    const { code, stdout } = await cli("doctor", "--json");
    const { ok, findings } = JSON.parse(stdout);
    expect(findings.filter((finding: { verdict: string }) => finding.verdict === "wrong")).toEqual([]);
    expect({ code, ok }).toEqual({ code: 0, ok: true });
    expect((await cli("doctor")).stdout).toMatch(/ok +workers +2/);
  });

  it("proves its laws from its streams", async () => {
    await cli("start", "hello", "--input", '{"name":"Law"}', "--id", "lawful", "--wait");
    const all = await cli("verify", "--json");
    const report = JSON.parse(all.stdout);
    expect({ code: all.code, said: report.violations }).toEqual({ code: 0, said: [] });
    expect(report.read.instances).toBeGreaterThan(0);
    expect((await cli("verify", "--instance", "lawful")).stdout).toMatch(/instances 1.*no law is broken/s);
    expect((await cli("verify", "--instance", "nobody-here")).code).toBe(3);
    const journal = join(dir, "journal.jsonl");
    await writeFile(journal, '{"kind":"started","instanceId":"never-was"}\n');
    const lost = await cli("verify", "--journal", journal);
    expect(lost.code).toBe(1);
    expect(lost.stdout).toMatch(/I1 +never-was +it was acknowledged/);
    await writeFile(journal, '{"kind":"nonsense"}\n');
    expect(await cli("verify", "--journal", journal)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("line 1, is no entry of a journal"),
    });
  });

  it("serves an application from outside the repository beside it", async () => {
    await writeFile(
      join(dir, "other.ts"),
      `import { defineOrchestration } from "holdfast";
       export const double = defineOrchestration<number, number>("double", { run: async (_ctx, n) => n * 2 });`,
    );
    const other = await startDev(await tempDir(), {
      args: ["--app", join(dir, "other.ts"), "--workers", "0"],
      env: { NATS_URL: dev.ready.natsUrl, HOLDFAST_PREFIX: "other", GATEWAY_PORT: "0" },
    });
    expect(other.ready.pids.nats).toBeUndefined();
    expect((await fetch(`${other.ready.dashboard}/healthz`)).status, "it says where it listens").toBe(200);
    const start = ["start", "double", "--input", "21", "--wait", "--data-dir", other.dataDir];
    expect(await runCli(start)).toMatchObject({ code: 0, stdout: "42\n" });
    // As when its terminal is closed.
    other.signal("SIGHUP");
    expect(await other.ended()).toBe(0);
    expect(none(other.allPids())()).toBe(true);
    await rm(other.dataDir, { recursive: true, force: true });
  });

  it("starts a worker again that was killed", async () => {
    const [victim = 0] = dev.ready.pids.workers;
    process.kill(victim, "SIGKILL");
    await until(() => /worker-1 was ended by SIGKILL; starting it again/.test(dev.stderr()), "it is noticed");
    const result = await cli("start", "fan-out", "--input", '{"n":20}', "--wait", "--timeout", "30s");
    expect(result.stdout).toBe("190\n");
  });

  it("stops everything on SIGTERM, keeps the data, and goes on from there", async () => {
    await cli("start", "wait-for-signal", "--id", "survivor");
    await until(async () => (await json("get", "survivor")).status === "running", "it runs");
    const { natsUrl } = dev.ready;
    dev.signal("SIGTERM");
    expect(await dev.ended()).toBe(0);
    expect(none(dev.allPids())()).toBe(true);
    expect(dev.stdout().split("\n")).toHaveLength(2);
    expect((await cli("list")).code).toBe(5);

    dev = await startDev(dir);
    expect(dev.ready.natsUrl, "programs that know the address find it again").toBe(natsUrl);
    await cli("signal", "survivor", "go", "7");
    expect(await json("result", "survivor")).toMatchObject({ status: "completed", output: 7 });
  });

  it("leaves nothing running when it is killed itself", async () => {
    dev.signal("SIGKILL");
    await dev.ended();
    await until(none(dev.allPids()), "every process is gone");
  });
});

it("dev that is told to stop while it starts leaves nothing running", async () => {
  const dataDir = await tempDir();
  const args = [bin, "dev", "--app", basicsApp, "--data-dir", dataDir];
  const child = spawn(process.execPath, args, { cwd: dataDir, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const ended = once(child, "close");
  // The server is up and the services are being started.
  await until(() => /NATS \S+ on /.test(said), "the server runs");
  await until(async () => (await processesIn(dataDir)).length > 2, "services are being started");
  child.kill("SIGINT");
  expect(await ended).toEqual([130, null]);
  expect(said).not.toContain("ready");
  expect(await processesIn(dataDir)).toEqual([]);
  await rm(dataDir, { recursive: true });
});

it("dev on a server that will not do: one sentence, exit code 5, nothing started", async () => {
  const old = createServer((socket) => {
    const info = {
      server_id: "x",
      server_name: "old",
      version: "2.10.4",
      proto: 1,
      headers: true,
      jetstream: true,
    };
    socket.on("error", () => undefined);
    socket.on("data", (data) => data.includes("PING") && socket.write("PONG\r\n"));
    socket.write(`INFO ${JSON.stringify({ ...info, max_payload: 1_048_576 })}\r\n`);
  });
  await new Promise<void>((resolve) => old.listen(0, "127.0.0.1", resolve));
  const { port } = old.address() as AddressInfo;
  const dir = await tempDir();
  const dev = (url: string) =>
    runCli(["dev", "--app", basicsApp, "--data-dir", dir, "--json"], { env: { NATS_URL: url } });
  try {
    const tooOld = await dev(`nats://me:secret@127.0.0.1:${port}`);
    expect(tooOld).toMatchObject({ code: 5, stdout: "" });
    expect(JSON.parse(tooOld.stderr).error).toMatchObject({
      code: "nats_too_old",
      message: expect.stringMatching(/2\.10\.4.*2\.14/),
    });
    expect(tooOld.stderr).not.toContain("secret");
    const nobody = await dev("nats://127.0.0.1:1");
    expect(nobody).toMatchObject({ code: 5, stdout: "" });
    expect(JSON.parse(nobody.stderr).error.code).toBe("nats_unreachable");
  } finally {
    old.close();
    await rm(dir, { recursive: true, force: true });
  }
});
