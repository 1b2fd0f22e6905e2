/** What code of a test application did, in a file the test reads: it survives the death of its process. */
import { appendFileSync } from "node:fs";

export function note(...words: (string | number)[]): void {
  const file = process.env.HOLDFAST_TEST_JOURNAL;
  if (file) appendFileSync(file, `${words.join(" ")}\n`);
}
