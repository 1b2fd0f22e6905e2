import { readFileSync } from "node:fs";
import { HoldfastError, messageOf } from "../../../shared/errors/index.ts";
import { type JournalEntry, readJournalLine } from "../../../shared/verify/index.ts";

/** Throws with the number of the line that is wrong. */
export function journalFrom(file: string): JournalEntry[] {
  const text = read(file);
  return text.split("\n").flatMap((line, index) => {
    try {
      return readJournalLine(line) ?? [];
    } catch (error) {
      const why = messageOf(error);
      throw new HoldfastError({
        code: "invalid_input",
        message: `${file}, line ${index + 1}, is no entry of a journal: ${why}`,
      });
    }
  });
}

function read(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    const why = messageOf(error);
    throw new HoldfastError({ code: "invalid_input", message: `the journal cannot be read: ${why}` });
  }
}
