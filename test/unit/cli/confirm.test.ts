import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { Cli } from "../../../services/cli/connection/client-command.ts";
import { main } from "../../../services/cli/main.ts";
import { confirm } from "../../../services/cli/terminal/confirm.ts";

function terminal(answer: string | undefined): { cli: Cli; said: () => string } {
  let said = "";
  const stdin = Object.assign(Readable.from(answer === undefined ? [] : [answer]), { isTTY: true });
  const stderr = { isTTY: true, write: (text: string) => (said += text) };
  return { cli: { env: {}, stdout: { write: () => true }, stderr, stdin, exitCode: 0 }, said: () => said };
}

describe("a confirmation", () => {
  it.each([
    ["y\n", true],
    ["YES\n", true],
    ["n\n", false],
    ["\n", false],
    ["yesterday\n", false],
    [undefined, false],
  ])("answered %j", async (answer, may) => {
    const { cli, said } = terminal(answer);
    expect(await confirm(cli, {}, "terminate w1")).toBe(may);
    expect(said()).toBe(`terminate w1. Go on? [y/N] ${may ? "" : "nothing was done\n"}`);
    expect(cli.exitCode).toBe(may ? 0 : 1);
  });

  it("is not asked for with --yes", async () => {
    const { cli, said } = terminal("n\n");
    expect(await confirm(cli, { yes: true }, "terminate w1")).toBe(true);
    expect(said()).toBe("");
  });

  it.each([
    [["terminate", "w1"]],
    [["sessions", "evict", "s1"]],
    [["sessions", "drain", "s1"]],
    [["workers", "drain", "w1"]],
    [["dead", "retry", "1", "2"]],
    [["dead", "discard", "1"]],
  ])("%j is refused where there is no terminal, before anything is connected", async (args) => {
    let err = "";
    const streams = { stdout: { write: () => true }, stderr: { write: (text: string) => (err += text) } };
    expect(await main([...args, "--nats-url", "nats://127.0.0.1:1", "--json"], {}, streams)).toBe(2);
    expect(JSON.parse(err)).toMatchObject({ error: { code: "confirmation_needed", hint: "Add --yes." } });
  });
});
