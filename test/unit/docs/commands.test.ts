/** Every `holdfast` command in the documents is one the program takes, and every npm script they name is there. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { expect, it } from "vitest";
import { program } from "../../../services/cli/program.ts";
import { exitCodes } from "../../../services/cli/terminal/exit-codes.ts";

const root = resolve(import.meta.dirname, "../../..");
const inFolder = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(md|txt)$/.test(path))
    .map((path) => join(folder, path));
const documents = ["README.md", "CONTRIBUTING.md", ...inFolder("docs"), ...inFolder("examples")];

/** Of code blocks and of `code` in the text. cli.md is written from the program itself. */
function snippetsOf(path: string): string[] {
  const text = readFileSync(join(root, path), "utf8");
  const blocks = [...text.matchAll(/^```(?:sh|text|)\n([\s\S]*?)^```$/gm)].flatMap(([, code = ""]) =>
    code.replaceAll("\\\n", " ").split("\n"),
  );
  const inline = [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`\n]+)`/g)];
  return [...blocks, ...inline.map(([, code = ""]) => code)];
}

/** As a shell would cut it, without what comes behind the command. */
const wordsOf = (line: string): string[] =>
  (/^(?:\$ )?(?:npx )?holdfast( .*)?$/.exec(line.trim())?.[1] ?? "")
    .split(/ [#|&>;]|; /)[0]
    ?.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];

function complaintAbout(words: readonly string[]): string | undefined {
  const cli = {
    env: {},
    exitCode: exitCodes.ok,
    stdout: { write: () => true },
    stderr: { write: () => true },
  };
  let command: Command = program(cli);
  let at = 0;
  for (; at < words.length; at++) {
    const next = command.commands.find((one) => one.name() === words[at]);
    if (!next) break;
    command = next;
  }
  const first = words[at];
  if (command.commands.length > 0 && first !== undefined && !/^[-<…]/.test(first))
    return `there is no command ${words.slice(0, at + 1).join(" ")}`;
  const known = command.options.flatMap(({ long, short }) => [long, short]);
  const unknown = words
    .slice(at)
    .filter((word) => /^--?[a-z]/.test(word))
    .map((word) => word.split("=")[0] ?? "")
    .filter((option) => !known.includes(option) && !["--help", "--version"].includes(option));
  return unknown.length === 0 ? undefined : `${command.name()} has no option ${unknown.join(", ")}`;
}

it("shows only commands and options the program has", () => {
  const wrong: string[] = [];
  let seen = 0;
  for (const path of documents.filter((one) => one !== "docs/cli.md")) {
    for (const line of snippetsOf(path)) {
      const words = wordsOf(line);
      if (words.length === 0) continue;
      seen++;
      const complaint = complaintAbout(words);
      if (complaint !== undefined) wrong.push(`${path}: ${line.trim()}: ${complaint}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(seen).toBeGreaterThan(50);
});

it("names only npm scripts that are there", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const wrong = documents.flatMap((path) =>
    [...readFileSync(join(root, path), "utf8").matchAll(/npm run ([a-z][\w:-]*)/g)]
      .map(([, name = ""]) => name)
      // Of the application that `holdfast init` writes.
      .filter((name) => !(name in scripts) && name !== "dev")
      .map((name) => `${path}: npm run ${name}`),
  );
  expect(wrong).toEqual([]);
});
