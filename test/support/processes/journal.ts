/** The reader of `test/apps/journal.ts`: one line for each thing the application's code did, in any process. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./stack.ts";

export class Journal implements Disposable {
  readonly #dir = mkdtempSync(join(tmpdir(), "holdfast-journal-"));
  readonly file = join(this.#dir, "journal");
  readonly env = { HOLDFAST_TEST_JOURNAL: this.file };

  lines(beginning = ""): string[] {
    try {
      const all = readFileSync(this.file, "utf8").split("\n");
      return all.filter((line) => line !== "" && line.startsWith(beginning));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return []; // nothing happened yet
      throw error;
    }
  }

  /** Waits until so many lines begin so. */
  until(beginning: string, count = 1, timeoutMs?: number): Promise<string[]> {
    const enough = () => {
      const lines = this.lines(beginning);
      return lines.length >= count && lines;
    };
    return until(`${count} × "${beginning}" in the journal`, enough, timeoutMs);
  }

  clear(): void {
    rmSync(this.file, { force: true });
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
