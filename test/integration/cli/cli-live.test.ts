/** What goes on for ever, and what looks at a whole installation: watch, top and doctor before a real server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { main } from "../../../services/cli/main.ts";
import { shapes } from "../../../services/cli/reference/shapes.ts";
import { findBench } from "../../../services/cli/verbs/bench.ts";
import { encode, leaseKeys, subjects } from "../../../shared/bus/index.ts";
import { writeHistory } from "../../support/gateway/gateway.ts";
import { startNats, type TestNats } from "../../support/nats/nats-server.ts";
import { repository, runCli, until } from "../../support/processes/cli.ts";
import { type CliWorld, cliWorld, park, past } from "../../support/worlds/cli-world.ts";

let nats: TestNats;
let world: CliWorld;
beforeAll(async () => {
  nats = await startNats();
  world = await cliWorld(nats.url);
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await nats?.stop();
});

/** A command that is still running, and what it has said. */
function begin(args: readonly string[], terminal = false) {
  const said = { out: "", err: "" };
  const write = (key: "out" | "err") => ({
    write: (text: string) => (said[key] += text),
    ...(terminal ? { isTTY: true, columns: 90, rows: 30 } : {}),
  });
  const streams = { stdout: write("out"), stderr: write("err") };
  const code = main([...args, "--nats-url", nats.url], { NO_COLOR: "1" }, streams);
  return { said, code };
}
const run = async (...args: string[]) => {
  const { said, code } = begin(args);
  return { code: await code, ...said };
};

/** The last complete drawing. */
const drawn = (out: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  (out.split("\u001b[J").at(-2) ?? "").replaceAll(/\u001b\[[0-9;]*[A-Za-z]|\r/g, "");

describe("watch", () => {
  it("draws again as it goes on, and ends with the instance", async () => {
    const lines = begin(["watch", "docs-live"]);
    const json = begin(["watch", "docs-live", "--json"]);
    const tree = begin(["watch", "docs-live"], true);
    await until(() => drawn(tree.said.out).includes("session docs-s1"), "it is drawn");
    expect(drawn(tree.said.out)).toMatch(
      /^docs-live {2}classify-docs {2}running .*\n└─ ● session docs-s1 ml-classifier .* active on worker-a-k3x9, epoch 118\n {3}├─ ✓ call classify {2}180 ms\n/,
    );
    await until(() => lines.said.out.split("\n").length === 10, "nine lines");
    await world.live.append([
      { at: past + 9_000, events: [{ kind: "timer.created", fireAt: past + 99_000 }] },
    ]);
    // No notice was sent: it looks by itself.
    await until(() => drawn(tree.said.out).includes("timer"), "the timer is drawn");
    await world.live.append([
      { at: past + 9_500, events: [{ kind: "instance.completed", output: { json: 1 } }] },
    ]);
    world.bus.send(subjects().notice("docs-live", "ended"), encode({}));
    expect(await Promise.all([lines.code, json.code, tree.code])).toEqual([0, 0, 0]);
    expect(drawn(tree.said.out)).toMatch(/^docs-live {2}classify-docs {2}completed {2}9\.5 s\n/);
    expect(lines.said.out.trimEnd().split("\n")).toHaveLength(11);
    expect(lines.said.out).toMatch(/03:04:15\.178 {2}docs-live {2}instance\.completed {2}output=1\n$/);
    for (const line of json.said.out.trimEnd().split("\n")) shapes.watch?.line?.parse(JSON.parse(line));
  });

  it("is ended by Ctrl-C with 130", async () => {
    const started = { kind: "instance.started", name: "demo", input: { json: 1 } };
    await writeHistory(world.history, "for-ever", [{ at: past, events: [started] }]);
    await world.put.instance({ instanceId: "for-ever" });
    const args = ["bin/holdfast.js", "watch", "for-ever", "--nats-url", nats.url];
    const child = spawn(process.execPath, args, { cwd: repository, stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    expect(String((await once(child.stdout, "data"))[0])).toContain("instance.started");
    child.kill("SIGINT");
    expect(await exited).toEqual([130, null]);
  });
});

describe("top", () => {
  it("shows what is there and what changes", async () => {
    const top = begin(["top", "--jsonl", "--every", "100ms", "--count", "30"]);
    await until(() => top.said.out.includes("\n"), "a first look");
    for (const n of [1, 2, 3]) {
      await world.put.instance({ instanceId: `quick-${n}` });
      await world.put.instance({ instanceId: `quick-${n}`, status: n === 3 ? "failed" : "completed" });
    }
    expect(await top.code).toBe(0);
    const samples = top.said.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    for (const sample of samples) shapes.top?.line?.parse(sample);
    const last = samples.at(-1);
    expect(last.instances).toMatchObject({ completed: 3, failed: 2 });
    expect(Math.max(...samples.map(({ perSecond }) => perSecond.completed))).toBeGreaterThan(0);
    expect(last.workers.map(({ workerId }: { workerId: string }) => workerId)).toEqual([
      "worker-a-k3x9",
      "worker-c-99ab",
    ]);
    expect(last.sessions[0]).toMatchObject({ sessionId: "docs-s1", calls: 412 });
  });

  it("draws in place on a terminal, and looks once without one", async () => {
    const once = await run("top", "--every", "10ms");
    expect(once).toMatchObject({ code: 0, err: "" });
    expect(once.out).toMatch(/^holdfast top {2}nats:\/\/127\.0\.0\.1:\d+ /);
    const screen = begin(["top", "--every", "10ms", "--count", "3"], true);
    expect(await screen.code).toBe(0);
    expect(screen.said.out.split("\u001b[J")).toHaveLength(4);
    expect(drawn(screen.said.out)).toContain("worker-a-k3x9");
  });
});

describe("doctor", () => {
  const verdicts = async () => {
    const { code, out } = await run("doctor", "--json");
    const { ok, findings } = JSON.parse(out);
    shapes.doctor?.json?.parse({ ok, findings });
    const found: Record<string, string> = {};
    for (const { code: key, what, verdict } of findings) found[key === "queue" ? what : key] = verdict;
    return { code, ok, found };
  };

  it("finds what is missing, then what is there", async () => {
    const names = subjects();
    await world.bus.publish(names.activity("mails", "send"), encode({}));
    await park(world.bus, "order-7");
    expect(await verdicts()).toEqual({
      code: 1,
      ok: false,
      found: {
        ...{ generation: "note", versions: "good", writes: "good" },
        ...{ server: "good", disk: "note", limits: "good", clock: "good", streams: "good", replicas: "good" },
        // Without an orchestrator nothing more is said of partitions.
        ...{ orchestrators: "wrong", watcher: "wrong", workers: "good", clocks: "wrong" },
        ...{ INBOX: "good", ACTIVITIES: "wrong", CLAIMS: "good", SESSIONS: "good" },
        ...{ activity_unserved: "wrong", histories: "good", parked: "wrong", dead_letters: "note" },
      },
    });
    await world.put.service({ service: "orchestrator", id: "o1" });
    await world.put.service({ service: "watcher", id: "t1", acting: true });
    for (let partition = 0; partition < 16; partition++) await world.put.partition(partition, "o1");
    const lease = `$KV.${names.engineBucket}.${leaseKeys.service("watcher")}`;
    await world.bus.publish(lease, encode({ v: 1, holder: "t1" }), { ttlMs: 600_000 });
    await world.bus.purge(names.activitiesStream, ">", Number.MAX_SAFE_INTEGER);
    await world.put.worker({ workerId: "worker-a-k3x9" });
    await world.put.worker({ workerId: "worker-c-99ab" });
    const { found } = await verdicts();
    expect(found).toMatchObject({ orchestrators: "good", partitions: "good", watcher: "good" });
    expect(found).not.toHaveProperty("activity_unserved");
    expect(found).not.toHaveProperty("clocks");
  });

  it("says that a server was never used", async () => {
    const { code, out } = await run("doctor", "--prefix", "elsewhere");
    expect(code).toBe(1);
    expect(out).toContain("none: nothing was ever run on this server under this prefix");
  });
});

it("bench runs in a clone, and says so where it is not part of what is installed", async () => {
  const { code, stdout } = await runCli(["bench", "--help"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("--only") });
  expect(findBench(repository)).toBe(join(repository, "bench", "main.ts"));
  expect(() => findBench("/")).toThrow("the benchmark is not part of the installed package");
});
