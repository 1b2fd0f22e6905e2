/** `holdfast completion`: prints a completion script for the shell, generated from the tree of commands. */
import { Argument, Command } from "commander";
import type { Cli } from "../connection/client-command.ts";
import { bashCompletion } from "./bash.ts";
import { type CommandSpec, specOf } from "./command-tree.ts";
import { fishCompletion } from "./fish.ts";
import { zshCompletion } from "./zsh.ts";

const shells: Readonly<Record<string, (root: CommandSpec) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** `root` returns the whole program, which is complete only after every command was added. */
export const completionCommand = (cli: Cli, root: () => Command): Command =>
  new Command("completion")
    .description("print a completion script: source <(holdfast completion bash)")
    .addArgument(new Argument("<shell>", "your shell").choices(Object.keys(shells)))
    .action((shell: string) => {
      cli.stdout.write(shells[shell]?.(specOf(root())) ?? "");
    });
