/** Reads a history file given on the command line. */
import { readFileSync } from "node:fs";
import { tokenPattern } from "../../../schemas/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { HistoryFile } from "../../../shared/sdk/index.ts";

/** Undefined if `given` is not a file and can be an instance id. */
export function readHistoryFile(given: string): HistoryFile | undefined {
  const text = contentOf(given);
  if (text === undefined) return undefined;
  const parsed = HistoryFile.safeParse(json(text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Fault("config", {
    code: "history_unreadable",
    message: `${given === "-" ? "stdin" : given} is not a history: ${issue ? `${issue.path.join(".")} ${issue.message}` : ""}`,
    hint: "Take one with `holdfast history <id> --export`, or with “Download history” of the dashboard.",
  });
}

function contentOf(given: string): string | undefined {
  if (given === "-") return readFileSync(0, "utf8");
  try {
    return readFileSync(given, "utf8");
  } catch {
    if (tokenPattern.test(given)) return undefined;
    throw new Fault("config", {
      code: "history_unreadable",
      message: `cannot read the history file ${given}`,
    });
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The schema refuses it.
  }
}
