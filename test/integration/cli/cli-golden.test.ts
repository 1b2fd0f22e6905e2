/** What every command prints for people and for programs, on data made by hand on a real server. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { main } from "../../../services/cli/main.ts";
import { shapes } from "../../../services/cli/reference/shapes.ts";
import { startNats, type TestNats } from "../../support/nats/nats-server.ts";
import { type CliWorld, cliWorld } from "../../support/worlds/cli-world.ts";

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

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const said = { out: "", err: "" };
  const streams = {
    stdout: { write: (text: string) => (said.out += text) },
    stderr: { write: (text: string) => (said.err += text) },
  };
  const server = args.includes("--nats-url") ? [] : ["--nats-url", nats.url];
  const code = await main([...args, ...server], env, streams);
  return { code, ...said };
}

/** What differs from run to run: where the server is, and how old a session opened long ago is by now. */
const steady = (text: string): string =>
  text
    .replaceAll(nats.url, "nats://<server>")
    .replace(/"ageMs":( ?)\d+/g, '"ageMs":$1<age>')
    .replace(/^(age\s+).*$/gm, "$1<age>");

const commands: [golden: string, args: string[]][] = [
  ["list", ["list"]],
  ["list-failed", ["list", "--status", "failed", "parked", "--name", "report", "--limit", "5"]],
  ["get", ["get", "docs-live"]],
  ["get-failed", ["get", "report-2"]],
  ["history", ["history", "docs-live"]],
  ["result", ["result", "report-1"]],
  ["sessions-list", ["sessions", "list"]],
  ["sessions-describe", ["sessions", "describe", "docs-s1"]],
  ["sessions-explain", ["sessions", "explain", "whisper-1"]],
  ["workers-list", ["workers", "list"]],
  ["workers-describe", ["workers", "describe", "worker-a-k3x9"]],
  ["dead-list", ["dead", "list"]],
  ["dead-show", ["dead", "show", "1"]],
];

describe("golden outputs", () => {
  it.each(commands)("%s for people", async (name, args) => {
    const { code, out, err } = await run(args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    await expect(steady(out)).toMatchFileSnapshot(`../../golden/cli/${name}.txt`);
  });

  it.each(commands)("%s for programs", async (name, args) => {
    const shape = shapes[args.slice(0, /sessions|workers|dead/.test(args[0] ?? "") ? 2 : 1).join(" ")];
    const json = await run([...args, "--json"]);
    const jsonl = await run([...args, "--jsonl"]);
    expect([json.code, json.err, jsonl.code, jsonl.err]).toEqual([0, "", 0, ""]);
    expect(json.out.split("\n"), "one line").toHaveLength(2);
    shape?.json?.parse(JSON.parse(json.out));
    for (const line of jsonl.out.trimEnd().split("\n")) (shape?.line ?? shape?.json)?.parse(JSON.parse(line));
    const text = `--json\n${json.out}\n--jsonl\n${jsonl.out}`;
    await expect(steady(text)).toMatchFileSnapshot(`../../golden/cli/${name}-json.txt`);
  });

  it("colours, where they are wanted", async () => {
    const { out } = await run(["list"], { FORCE_COLOR: "1" });
    await expect(out).toMatchFileSnapshot("../../golden/cli/list-colours.txt");
    expect((await run(["list"], { FORCE_COLOR: "1", NO_COLOR: "1" })).out).toBe((await run(["list"])).out);
  });

  it("control characters of users never reach the terminal", async () => {
    for (const args of [["get", "report-2"], ["list"]]) expect((await run(args)).out).not.toContain("\u001b");
  });

  it("how it was done, on stderr, with --verbose", async () => {
    const start = await run(["start", "hello", "--id", "new-1", "--input", '{"a":"it\'s"}', "-v"]);
    expect(start).toMatchObject({ code: 0, out: "new-1\n" });
    expect(steady(start.err)).toBe(
      "NATS at nats://<server> (--nats-url)\n" +
        `nats --server nats://<server> pub --jetstream orchestrations.new-1.start.hello '{"a":"it'\\''s"}' -H Nats-Msg-Id:start-new-1\n` +
        "no orchestrator is running: new-1 is stored and begins when one is started\n",
    );
    const signal = await run(["signal", "new-1", "go", "7", "--verbose", "--json"]);
    expect(signal).toMatchObject({ code: 0, out: '{"ok":true}\n' });
    expect(signal.err).toContain("pub --jetstream orchestrations.new-1.signal.go 7\n");
  });
});

describe("exit codes", () => {
  it.each<[number, string[]]>([
    [0, ["get", "docs-live"]],
    [0, ["result", "report-1"]],
    [0, ["list", "--id-prefix", "no-such"]],
    [1, ["result", "report-2"]],
    [1, ["signal", "report-1", "go"]],
    [1, ["cancel", "report-1"]],
    [1, ["doctor"]],
    [1, ["sessions", "evict", "whisper-1", "--yes"]],
    [2, ["list", "--limit", "many"]],
    [2, ["frobnicate"]],
    [2, ["start", "hello", "--input", "{half"]],
    [2, ["get", "a.b"]],
    [2, ["terminate", "docs-live"]],
    [2, ["replay", "/no/such/file.json", "--app", "examples/basics/app.ts"]],
    [3, ["get", "ghost"]],
    [3, ["history", "ghost"]],
    [3, ["watch", "ghost"]],
    [3, ["result", "ghost"]],
    [3, ["stream", "ghost"]],
    [3, ["terminate", "ghost", "--yes"]],
    [3, ["sessions", "describe", "ghost"]],
    [3, ["sessions", "drain", "ghost", "--yes"]],
    [3, ["workers", "describe", "ghost"]],
    [3, ["workers", "drain", "ghost", "--yes"]],
    [3, ["dead", "show", "99"]],
    [3, ["dead", "retry", "99", "--yes"]],
    [3, ["dead", "discard", "99", "--yes"]],
    [4, ["result", "docs-live", "--timeout", "20ms"]],
    [5, ["list", "--nats-url", "nats://127.0.0.1:1"]],
  ])("%i: %j", async (expected, args) => {
    const { code, err } = await run(args);
    expect(code).toBe(expected);
    if (expected >= 2) expect(err).toMatch(/^holdfast: /);
    expect(err).not.toMatch(/\n\s+at /);
  });

  it("errors have a code and a hint, also for programs", async () => {
    const { err } = await run(["get", "ghost", "--json"]);
    expect(JSON.parse(err)).toEqual({
      error: {
        code: "instance_not_found",
        message: "there is no instance ghost",
        hint: "`holdfast list` shows the instances there are.",
      },
    });
    expect((await run(["result", "docs-live", "--timeout", "10ms"])).err).toBe(
      "holdfast: docs-live has not ended in time (running) (result_timeout)\n" +
        "  It goes on; `holdfast watch <id>` shows what it waits for.\n",
    );
  });
});

it("retries a dead letter as it came and discards another, once", async () => {
  const retried = await run(["dead", "retry", "1", "--yes", "--json"]);
  expect(retried).toMatchObject({ code: 0, out: '{"seq":1,"subject":"orchestrations.docs-77.signal.go"}\n' });
  expect((await run(["dead", "discard", "2", "--yes", "--json"])).out).toBe('{"ok":true}\n');
  expect((await run(["dead", "list"])).out).toBe("no dead letters\n");
  expect((await run(["dead", "retry", "1", "--yes"])).code).toBe(3);
});
