import { readFileSync } from "node:fs";
import { Fault, messageOf } from "../../../shared/errors/index.ts";

/** Reads `<json>`, `@<file>` or `-` for stdin. Undefined if the option was not given. */
export function readInput(
  given: string | undefined,
  option: string,
  stdin: () => string = () => readFileSync(0, "utf8"),
): unknown {
  if (given === undefined) return undefined;
  const { text, from } = source(given, stdin);
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = messageOf(error);
    throw new Fault("config", {
      code: "invalid_json",
      message: `${option}${from} is not JSON: ${why}.`,
      hint: /^[\w@./-]+$/.test(text)
        ? `Text needs quotes of its own: '"text"'.`
        : `Names and text need double quotes, and the shell single ones around all: '{"name":"Ada"}'.`,
    });
  }
}

function source(given: string, stdin: () => string): { text: string; from: string } {
  if (given === "-") return { text: stdin(), from: " from stdin" };
  if (!given.startsWith("@")) return { text: given, from: "" };
  const path = given.slice(1);
  try {
    return { text: readFileSync(path, "utf8"), from: ` from ${path}` };
  } catch {
    throw new Fault("config", { code: "input_unreadable", message: `cannot read the input file ${path}` });
  }
}
