/** What holds for every command there is: wrong usage and a server that is away are a line each, with what helps. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Argument, Command } from "commander";
import { expect, it } from "vitest";
import { main } from "../../../services/cli/main.ts";
import { program } from "../../../services/cli/program.ts";
import { exitCodes } from "../../../services/cli/terminal/exit-codes.ts";

const silent = { write: () => true };
const root = program({ env: {}, exitCode: exitCodes.ok, stdout: silent, stderr: silent });

/** Every command that does something, with the words that lead to it. */
const leaves = (
  command: Command,
  path: readonly string[],
): { command: Command; path: readonly string[] }[] =>
  command.commands.length === 0
    ? [{ command, path }]
    : command.commands.flatMap((one) => leaves(one, [...path, one.name()]));
/** `bench` hands its options on to the benchmark. */
const every = leaves(root, []).filter(({ command }) => command.name() !== "bench");

const run = async (args: readonly string[]) => {
  const said = { out: "", err: "" };
  const code = await main(
    args,
    {},
    {
      stdout: { write: (text: string) => (said.out += text) },
      stderr: { write: (text: string) => (said.err += text) },
    },
  );
  return { code, ...said };
};

it.each(every.map(({ path }) => path.join(" ")))("%s refuses an option it does not have", async (name) => {
  const { code, out, err } = await run([...name.split(" "), "--frobnicate"]);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  const [line, hint, ...rest] = err.split("\n");
  expect(line).toMatch(
    /^holdfast: (unknown option '--frobnicate'|missing required argument|required option)/,
  );
  expect(hint).toBe(`  \`holdfast ${name} --help\` says what it takes.`);
  expect(rest).toEqual([""]);
});

/** Something each argument takes. */
function sampleFor(argument: Argument): string {
  if (/^seq/.test(argument.name())) return "1";
  if (/json|input|payload/.test(argument.name())) return "{}";
  return "some-id";
}

const sampleValues: Readonly<Record<string, string>> = {
  "--from": "2026-11-01",
  "--to": "2026-11-08",
};

/** Services wait for their server, and `replay` looks for its application first. */
const asking = every.filter(
  ({ command }) =>
    command.name() !== "replay" &&
    ["--data-dir", "--jsonl"].every((name) => command.options.some(({ long }) => long === name)),
);

it.each(asking.map(({ path }) => path.join(" ")))("%s says that NATS is away", async (name) => {
  const { command } = asking.find(({ path }) => path.join(" ") === name) ?? {};
  if (!command) throw new Error(name);
  const options = command.options.filter(({ mandatory }) => mandatory);
  const given = options.flatMap(({ long }) => [long ?? "", sampleValues[long ?? ""] ?? "1"]);
  const sure = command.options.some(({ long }) => long === "--yes") ? ["--yes"] : [];
  const args = command.registeredArguments.map(sampleFor);
  const server = ["--nats-url", "nats://127.0.0.1:1", "--data-dir", mkdtempSync(join(tmpdir(), "no-dev-"))];
  const { code, out, err } = await run([...name.split(" "), ...args, ...given, ...sure, ...server]);
  expect({ code, out, err }).toEqual({
    ...{ code: exitCodes.connection, out: "" },
    err: expect.stringMatching(/^holdfast: .*127\.0\.0\.1:1.*\n {2}\S.*\n$/),
  });
});
