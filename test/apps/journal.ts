/** What code of a test application did, in a file the test reads: it survives the death of its process. */
import { appendFileSync, readFileSync } from "node:fs";

export function note(...words: (string | number)[]): void {
  const file = process.env.HOLDFAST_TEST_JOURNAL;
  if (file) appendFileSync(file, `${words.join(" ")}\n`);
}

/** How often, by any process. */
export function noted(beginning: string): number {
  const file = process.env.HOLDFAST_TEST_JOURNAL;
  if (!file) return 0;
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.startsWith(beginning)).length;
}
