export { completionCommand } from "./completion-command.ts";
export { type ArgumentSpec, type CommandSpec, type OptionSpec, specOf } from "./spec.ts";
