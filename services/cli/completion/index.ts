/** `holdfast completion`: a script for the shell, made from the tree of commands itself. */
import { Argument, Command } from "commander";
import type { Cli } from "../connection/client-command.ts";
import { bashCompletion } from "./bash.ts";
import { fishCompletion } from "./fish.ts";
import { type CommandSpec, specOf } from "./spec.ts";
import { zshCompletion } from "./zsh.ts";

const shells: Readonly<Record<string, (root: CommandSpec) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** `root`: the whole program, known only when everything was added to it. */
export const completionCommand = (cli: Cli, root: () => Command): Command =>
  new Command("completion")
    .description("print a completion script: source <(holdfast completion bash)")
    .addArgument(new Argument("<shell>", "your shell").choices(Object.keys(shells)))
    .action((shell: string) => {
      cli.stdout.write(shells[shell]?.(specOf(root())) ?? "");
    });
