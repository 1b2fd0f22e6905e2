/** States in Python and Go, in real workers that are killed in the middle. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadMails } from "../../examples/mails/mails.ts";
import { Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/hosted-mails.ts", import.meta.url));

let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start({
    app,
    workers: 1,
    env: process.env.GOCACHE ? { GOCACHE: process.env.GOCACHE } : {},
  });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe("a model in Python", () => {
  const mails = loadMails().slice(1000, 1200);

  /** Sorts the first half; which process did it. */
  async function half(): Promise<{ instanceId: string; pid: number }> {
    const input = { mails: mails.map(({ text }) => text) };
    const { instanceId } = await stack.client.start("sort-in-halves", input);
    let pid = 0;
    await until(`${instanceId} is half done`, async () => {
      const { customStatus } = await stack.client.status(instanceId);
      pid = (customStatus as { pid?: number } | undefined)?.pid ?? 0;
      return pid > 0;
    });
    return { instanceId, pid };
  }

  /** Sorts the other half; how the session was lost on the way. */
  async function otherHalf(instanceId: string) {
    const handle = stack.client.get<string[]>(instanceId);
    await handle.signal("go");
    const labels = await handle.result({ timeout: "50s" });
    const right = mails.filter(({ label }, i) => label === labels[i]).length;
    expect(labels).toHaveLength(mails.length);
    expect(right / mails.length).toBeGreaterThan(0.9);
    return (await stack.client.history(instanceId)).filter(({ kind }) => kind === "session.lost");
  }

  it("is killed in the middle: its session is lost at once and made anew", async () => {
    const { instanceId, pid } = await half();
    process.kill(pid, "SIGKILL");
    expect(await otherHalf(instanceId)).toMatchObject([
      { reason: "crashed", detail: expect.stringMatching(/model\.py\) ended with signal SIGKILL/) },
    ]);
  });

  it("ends with its worker, and another worker takes over", async () => {
    const { instanceId, pid } = await half();
    // A frozen interpreter cannot notice that the worker is gone: what ends it is the guard.
    process.kill(pid, "SIGSTOP");
    const [worker] = stack.of("worker").filter(({ gone }) => !gone);
    worker?.kill("SIGKILL");
    await until("the Python process has ended", async () => !isAlive(pid));
    await stack.run("worker");
    expect(await otherHalf(instanceId)).toHaveLength(1);
  });
});

const hasGo = spawnSync("go", ["version"]).status === 0;

it.skipIf(!hasGo)(
  "a host in Go holds a session too (skipped where there is no Go)",
  async () => {
    // Compiled once before: the first time it takes longer than a session may take to open.
    const source = fileURLToPath(new URL("../../examples/hosts/go/main.go", import.meta.url));
    const compiled = spawnSync("go", ["build", "-o", "/dev/null", source], { encoding: "utf8" });
    expect(compiled.stderr).toBe("");
    const handle = await stack.client.start("count-in-go", { numbers: [1, 2, 3] });
    expect(await handle.result({ timeout: "50s" })).toBe(6);
  },
  180_000,
);
