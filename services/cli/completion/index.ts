export { type ArgumentSpec, type CommandSpec, type OptionSpec, specOf } from "./command-tree.ts";
export { completionCommand } from "./completion-command.ts";
