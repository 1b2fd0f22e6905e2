/** Colours, used on a terminal unless the user has disabled them. */
import type { Environment } from "../../config.ts";

const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const;

export type Style = keyof typeof codes;
export type Paint = (style: Style | undefined, text: string) => string;

export const plain: Paint = (_style, text) => text;

export const colours: Paint = (style, text) => {
  if (style === undefined || text === "") return text;
  const [on, off] = codes[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
};

/** https://no-color.org and https://force-color.org: the first wins if both are set. */
export function paintFor(env: Environment, stream: { isTTY?: boolean }): Paint {
  if (env.NO_COLOR) return plain;
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR === "0" ? plain : colours;
  return stream.isTTY === true && env.TERM !== "dumb" ? colours : plain;
}

/** Number of columns a painted text takes. */
export const visibleLength = (text: string): number =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  text.replaceAll(/\u001b\[[0-9;]*[A-Za-z]/g, "").length;
