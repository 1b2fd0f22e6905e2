/** The words that can follow at each place of a command line. Pure. */
import { type CommandSpec, everyCommand, type OptionSpec } from "./command-tree.ts";

export interface Word {
  text: string;
  description: string;
}

export interface Place {
  /** The commands so far: `/sessions/list`; empty string at the beginning. */
  at: string;
  commands: readonly Word[];
  options: readonly OptionSpec[];
  /** Choices of the command's arguments. */
  values: readonly string[];
}

const help: OptionSpec = {
  flags: "-h, --help",
  long: "--help",
  short: "-h",
  takesValue: false,
  choices: [],
  description: "show help",
  default: undefined,
};

export const places = (root: CommandSpec): Place[] =>
  everyCommand(root).map((spec) => ({
    at: placeOf(spec.path),
    commands: spec.commands.map((one) => ({ text: one.path.at(-1) ?? "", description: one.description })),
    options: [...spec.options, help],
    values: spec.arguments.flatMap(({ choices }) => choices),
  }));

export const placeOf = (path: readonly string[]): string => path.map((name) => `/${name}`).join("");

/** Options whose value is a file or a folder. */
export const isPath = ({ flags }: OptionSpec): boolean => /<(file|folder|module)>/.test(flags);
