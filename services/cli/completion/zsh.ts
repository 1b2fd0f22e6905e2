/** The completion script for zsh. */
import type { CommandSpec } from "./command-tree.ts";
import { isPath, places, type Word } from "./words.ts";

export function zshCompletion(root: CommandSpec): string {
  const all = places(root);
  const known = all.flatMap(({ at }) => (at === "" ? [] : [at]));
  const withChoices = all.flatMap(({ at, options }) =>
    options.filter(({ choices }) => choices.length > 0).map(({ long, choices }) => ({ at, long, choices })),
  );
  const paths = [...new Set(all.flatMap(({ options }) => options.filter(isPath).map(({ long }) => long)))];
  const list = (words: readonly Word[]) => words.map(entry).join(" ");
  return `#compdef holdfast
# zsh completion of holdfast: source <(holdfast completion zsh), or save it as _holdfast in a folder of $fpath
_holdfast() {
  local at="" word
  local -a entries options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at/$word" in
      (${known.join("|")}) at="$at/$word" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${withChoices
  .map(
    ({ at, long, choices }) =>
      `    ("${at} ${long}") entries=(${choices.join(" ")}); _describe 'value' entries; return ;;`,
  )
  .join("\n")}
    (*" "(${paths.join("|")})) _files; return ;;
  esac
  case "$at" in
${all
  .map(({ at, commands, options, values }) => {
    const first = [...commands, ...values.map((text) => ({ text, description: "" }))];
    const flags = options.map(({ long, description }) => ({ text: long, description }));
    return `    ("${at}") entries=(${list(first)}); options=(${list(flags)}) ;;`;
  })
  .join("\n")}
  esac
  _describe 'command' entries
  _describe -o 'option' options
  (( \${#entries} )) || _files
}
if [ "$funcstack[1]" = "_holdfast" ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

function entry({ text, description }: Word): string {
  const word = description === "" ? text : `${text}:${description.replaceAll(":", "\\:")}`;
  return `'${word.replaceAll("'", "'\\''")}'`;
}
