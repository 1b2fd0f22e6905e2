/** The tree of commands as plain data, from which completion and the reference are generated. */
import type { Command } from "commander";

export interface OptionSpec {
  /** As shown in the help: `-y, --yes`. */
  flags: string;
  long: string;
  short: string | undefined;
  /** False for a switch. */
  takesValue: boolean;
  choices: readonly string[];
  description: string;
  default: string | undefined;
}

export interface ArgumentSpec {
  /** `<id>`, `[payload]`, `<seq...>` */
  shown: string;
  description: string;
  choices: readonly string[];
}

export interface CommandSpec {
  /** Without the program's name: `["sessions", "list"]`. */
  path: readonly string[];
  description: string;
  group: string;
  options: readonly OptionSpec[];
  arguments: readonly ArgumentSpec[];
  commands: readonly CommandSpec[];
}

export function specOf(command: Command, path: readonly string[] = []): CommandSpec {
  return {
    path,
    description: command.description(),
    group: command.helpGroup() ?? "",
    options: command.options.filter((option) => !option.hidden).map(optionOf),
    arguments: command.registeredArguments.map((argument) => {
      const inside = `${argument.name()}${argument.variadic ? "..." : ""}`;
      return {
        shown: argument.required ? `<${inside}>` : `[${inside}]`,
        description: argument.description,
        choices: argument.argChoices ?? [],
      };
    }),
    commands: command.commands
      .filter((one) => one.name() !== "help")
      .map((one) => specOf(one, [...path, one.name()])),
  };
}

const optionOf = (option: Command["options"][number]): OptionSpec => ({
  flags: option.flags,
  long: option.long ?? option.short ?? "",
  short: option.short,
  takesValue: option.required || option.optional,
  choices: option.argChoices ?? [],
  description: option.description,
  default:
    option.defaultValue === undefined || option.negate
      ? undefined
      : (option.defaultValueDescription ?? String(option.defaultValue)),
});

/** Depth first, the root included. */
export const everyCommand = (spec: CommandSpec): CommandSpec[] => [
  spec,
  ...spec.commands.flatMap(everyCommand),
];
