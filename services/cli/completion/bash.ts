/** The completion script for bash. */
import type { CommandSpec } from "./command-tree.ts";
import { isPath, places } from "./words.ts";

export function bashCompletion(root: CommandSpec): string {
  const all = places(root);
  const known = all.flatMap(({ at }) => (at === "" ? [] : [at]));
  const withChoices = all.flatMap(({ at, options }) =>
    options.filter(({ choices }) => choices.length > 0).map(({ long, choices }) => ({ at, long, choices })),
  );
  const paths = [...new Set(all.flatMap(({ options }) => options.filter(isPath).map(({ long }) => long)))];
  return `# bash completion of holdfast: source <(holdfast completion bash)
_holdfast() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" at="" words="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at/\${COMP_WORDS[i]}" in
      ${known.join(" | ")}) at="$at/\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $prev" in
${withChoices.map(({ at, long, choices }) => `    "${at} ${long}") words="${choices.join(" ")}" ;;`).join("\n")}
    *" "${paths.join(' | *" "')}) return ;;
  esac
  if [ -z "$words" ]; then
    case "$at" in
${all
  .map(({ at, commands, options, values }) => {
    const words = [...commands.map(({ text }) => text), ...values, ...options.map(({ long }) => long)];
    return `      "${at}") words="${words.join(" ")}" ;;`;
  })
  .join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _holdfast holdfast
`;
}
