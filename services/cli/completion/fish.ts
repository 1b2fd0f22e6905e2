/** The completion script for fish. */
import type { CommandSpec } from "./command-tree.ts";
import { isPath, places } from "./words.ts";

export function fishCompletion(root: CommandSpec): string {
  const all = places(root);
  const known = all.flatMap(({ at }) => (at === "" ? [] : [at]));
  const lines = all.flatMap(({ at, commands, options, values }) => {
    const here = `complete -c holdfast -n "__holdfast_at '${at}'"`;
    return [
      ...commands.map(({ text, description }) => `${here} -a ${text} -d ${quoted(description)}`),
      ...values.map((text) => `${here} -a ${text}`),
      ...options.map((option) => {
        const { long, short, takesValue, choices, description } = option;
        const value = !takesValue
          ? ""
          : choices.length > 0
            ? ` -x -a ${quoted(choices.join(" "))}`
            : isPath(option)
              ? " -r -F"
              : " -x";
        const letter = short === undefined ? "" : ` -s ${short.slice(1)}`;
        return `${here} -l ${long.slice(2)}${letter}${value} -d ${quoted(description)}`;
      }),
    ];
  });
  return `# fish completion of holdfast: holdfast completion fish | source
function __holdfast_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    switch "$at/$word"
      case ${known.map((at) => `'${at}'`).join(" ")}
        set at "$at/$word"
    end
  end
  test "$at" = "$argv[1]"
end
complete -c holdfast -f
${lines.join("\n")}
`;
}

const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
