/** docs/cli.md as text: commands from the tree of commands, shapes from their schemas. */
import type { ArgumentSpec, CommandSpec, OptionSpec } from "../completion/index.ts";
import { exitCodeMeanings, exitCodes } from "../terminal/exit-codes.ts";
import { type Names, shapeText } from "./shape-text.ts";
import { ownShapes, type Shape, shapes, wireShapes } from "./shapes.ts";

const names: Names = new Map([
  ...Object.entries(ownShapes).map(([name, schema]) => [schema, name] as const),
  ...Object.entries(wireShapes).map(([name, { schema }]) => [schema, name] as const),
]);

export function cliReference(root: CommandSpec): string {
  const common = commonOptions(root);
  const groups = [...new Set(root.commands.map(({ group }) => group))];
  const parts = groups.flatMap((group) => [
    `## ${group.replace(/:$/, "")}`,
    "",
    ...root.commands
      .filter((command) => command.group === group)
      .flatMap((command) => section(command, common)),
  ]);
  return `${[head(common), ...parts, ...namedShapes()].join("\n").trimEnd()}\n`;
}

/** Options that nearly every command has; the reference describes them once. */
function commonOptions(root: CommandSpec): OptionSpec[] {
  const of = (name: string) => root.commands.find(({ path }) => path[0] === name)?.options ?? [];
  return of("get").filter((option) => isIn(option, of("doctor")));
}

const isIn = ({ flags, description }: OptionSpec, list: readonly OptionSpec[]): boolean =>
  list.some((other) => other.flags === flags && other.description === description);

function head(common: readonly OptionSpec[]): string {
  return `# Command line

Generated from the commands and schemas themselves (\`npm run docs:cli\`); a test fails when it is not current.

- Data goes to stdout, everything else to stderr. On a terminal there are colours (\`NO_COLOR\` and \`FORCE_COLOR\` are
  honoured), and progress on stderr.
- \`--json\` prints one line of JSON, \`--jsonl\` one for each item of a list or each thing that happens. An error is one
  line on stderr, then: \`{"error":{"code","message","hint"?}}\`.
- What cannot be undone asks first on a terminal; elsewhere it needs \`--yes\`.
- The server is the one of \`--nats-url\`, else of \`--context\`, else \`NATS_URL\`, else the \`holdfast dev\` that runs in this
  folder (or in \`--data-dir\`), else the current context. Contexts are in \`$XDG_CONFIG_HOME/holdfast/contexts.json\`
  (\`~/.config\` where that is not set), readable by you alone; passwords in addresses are never printed.
- \`list\` and \`sessions list\` read the whole read model and choose while reading; ids cannot be searched by their
  beginning on the server. Fine for tens of thousands of instances that are still kept; retention keeps it so.

## Exit codes

| code | meaning |
| --- | --- |
${(Object.keys(exitCodes) as (keyof typeof exitCodes)[]).map((name) => `| ${exitCodes[name]} | ${exitCodeMeanings[name]} |`).join("\n")}

## Options of every command that talks to an installation

${options(common).join("\n")}
`;
}

function section(command: CommandSpec, common: readonly OptionSpec[]): string[] {
  if (command.commands.length > 0) {
    const own = command.commands.flatMap((one) => section(one, common));
    return [`### ${command.path.join(" ")}`, "", sentence(command.description), "", ...own];
  }
  const path = command.path.join(" ");
  const own = command.options.filter((option) => !isIn(option, common));
  const arguments_ = command.arguments.map(({ shown }) => ` ${shown}`).join("");
  const shape = shapes[path];
  return [
    `${"#".repeat(command.path.length + 2)} ${path}`,
    "",
    `\`holdfast ${path}${arguments_}${command.options.length > 0 ? " [options]" : ""}\``,
    "",
    sentence(command.description),
    "",
    ...described(command.arguments, own),
    ...(shape ? shapeLines(shape) : []),
  ];
}

function described(arguments_: readonly ArgumentSpec[], own: readonly OptionSpec[]): string[] {
  const lines = [
    ...arguments_.map(({ shown, description, choices }) => `- \`${shown}\` ${description}${oneOf(choices)}`),
    ...options(own),
  ];
  return lines.length === 0 ? [] : [...lines, ""];
}

const options = (list: readonly OptionSpec[]): string[] =>
  list.map(
    ({ flags, description, choices, default: value }) =>
      `- \`${flags}\` ${description}${oneOf(choices)}${value === undefined ? "" : ` (default \`${value}\`)`}`,
  );

const oneOf = (choices: readonly string[]): string =>
  choices.length === 0 ? "" : `: ${choices.map((choice) => `\`${choice}\``).join(", ")}`;

function shapeLines({ json, line, note }: Shape): string[] {
  const lines = [
    ...(json ? [`--json   ${shapeText(json, names)}`] : []),
    ...(line ? [`${json ? "--jsonl " : "a line  "} ${shapeText(line, names)}`] : []),
  ];
  return ["```text", ...lines, "```", "", ...(note === undefined ? [] : [note, ""])];
}

function namedShapes(): string[] {
  return [
    "## Shapes",
    "",
    "Times are milliseconds since 1970, durations milliseconds.",
    "",
    "```text",
    ...Object.entries(ownShapes).map(
      ([name, schema]) => `${name.padEnd(10)} ${shapeText(schema, names, schema)}`,
    ),
    "```",
    "",
    "The others are part of what goes over NATS:",
    "",
    ...Object.entries(wireShapes).map(
      ([name, { file }]) => `- \`${name}\`: [\`schemas/json/${file}\`](../schemas/json/${file})`,
    ),
    "",
  ];
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
