import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findNats } from "../../../services/cli/connection/find-nats.ts";
import { main } from "../../../services/cli/main.ts";
import { readInput } from "../../../services/cli/terminal/read-input.ts";
import { readDevFile, writeDevFile } from "../../../shared/sdk/where/dev-file.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "holdfast-cli-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

async function run(args: string[], env: Record<string, string> = {}) {
  const said = { out: "", err: "" };
  const code = await main(args, env, {
    stdout: { write: (text: string) => (said.out += text) },
    stderr: { write: (text: string) => (said.err += text) },
  });
  return { code, ...said };
}

describe("the command line", () => {
  it("explains itself", async () => {
    const help = await run(["--help"]);
    expect(help.code).toBe(0);
    expect(help.out).toMatch(/start \[options\] <name>/);
    expect(help.out).toMatch(/Exit codes:\n {2}0 +done/);
    expect((await run(["--version"])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([
    [["frobnicate"], /unknown command 'frobnicate'/],
    [["start"], /missing required argument 'name'/],
    [["start", "hello", "--inptu", "1"], /unknown option '--inptu'/],
    [["start", "hello", "--input", "{x"], /--input is not JSON/],
    [["start", "hello", "--input", "@/no/such"], /cannot read the input file \/no\/such/],
    [
      ["list", "--status", "odd"],
      /--status.* argument 'odd' is invalid. Allowed choices are pending, running/,
    ],
    [["list", "--limit", "0"], /--limit.* argument '0' is invalid. It must be a whole number/],
    [["dev"], /no application given/],
    [["dev", "--app", "/no/such.ts"], /cannot load the application \/no\/such.ts: there is no such file/],
    [["dev", "--app", "x", "--workers", "many"], /--workers many: must be a whole number from 0 to 64/],
  ])("refuses %o with exit code 2 and one line", async (args, message) => {
    const { code, out, err } = await run(args);
    expect(err).toMatch(message);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).not.toMatch(/\n\s+at /);
  });

  it.each([
    [["start", "hello", "--json", "--frob"], "unknown option '--frob'"],
    [["list", "--jsonl", "--limit", "x"], "It must be a whole number"],
    [["start", "--json"], "missing required argument 'name'"],
  ])("refuses %o in JSON", async (args, message) => {
    const { code, out, err } = await run(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err.trimEnd().split("\n")).toHaveLength(1);
    expect(JSON.parse(err)).toEqual({ error: { code: "usage", message: expect.stringContaining(message) } });
  });

  it("says so where there is no server to talk to", async () => {
    const { code, err } = await run(["list", "--data-dir", dir]);
    expect(code).toBe(5);
    expect(err).toContain(`no \`holdfast dev\` is running on ${dir}`);
    const refused = await run(["list", "--nats-url", "nats://127.0.0.1:1", "--json"]);
    expect(refused.code).toBe(5);
    expect(JSON.parse(refused.err)).toMatchObject({ error: { code: "nats_unreachable" } });
  });

  it("refuses unknown settings by name", async () => {
    const { code, err } = await run(["list", "--nats-url", "nats://127.0.0.1:1"], { HOLDFAST_PREFX: "a" });
    expect(code).toBe(2);
    expect(err).toContain("unknown setting HOLDFAST_PREFX");
  });
});

describe("readInput", () => {
  it("takes JSON, a file, or stdin", async () => {
    const file = join(dir, "input.json");
    await writeFile(file, '{"a":[1]}');
    expect(readInput('{"a":1}', "--input")).toEqual({ a: 1 });
    expect(readInput(`@${file}`, "--input")).toEqual({ a: [1] });
    expect(readInput("-", "--input", () => '"in"')).toBe("in");
    expect(readInput(undefined, "--input")).toBeUndefined();
    const complaint = (given: string): unknown => {
      try {
        return readInput(given, "the payload");
      } catch (error) {
        return error;
      }
    };
    expect(complaint("text")).toMatchObject({
      message: expect.stringMatching(/^the payload is not JSON/),
      hint: expect.stringContaining(`'"text"'`),
    });
    expect(complaint("{name:1}")).toMatchObject({ hint: expect.stringContaining("double quotes") });
    expect(() => readInput("-", "--input", () => "nope{")).toThrow(/--input from stdin is not JSON/);
  });
});

describe("the server to talk to", () => {
  it("is the option, then the variable, then the one of the data folder", () => {
    writeDevFile(dir, { pid: process.pid, natsUrl: "nats://dev:1", prefix: "p" });
    expect(findNats({ natsUrl: "nats://o:1" }, { NATS_URL: "nats://v:1" })).toEqual({
      NATS_URL: "nats://o:1",
    });
    expect(findNats({}, { NATS_URL: "nats://v:1" })).toEqual({ NATS_URL: "nats://v:1" });
    expect(findNats({ dataDir: dir }, {})).toEqual({ NATS_URL: "nats://dev:1", HOLDFAST_PREFIX: "p" });
    expect(findNats({ dataDir: dir, prefix: "q" }, {})).toMatchObject({ HOLDFAST_PREFIX: "q" });
  });

  it("is not the one of a process that is gone", () => {
    writeDevFile(dir, { pid: 2 ** 22 + 1, natsUrl: "nats://dev:1", prefix: "" });
    expect(readDevFile(dir)).toBeUndefined();
  });
});
