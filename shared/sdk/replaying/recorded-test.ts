/** Writes a test file that replays the code over the history of an instance. */
import type { HistoryFile } from "./history-file.ts";

export const runners = ["vitest", "jest", "node:test"] as const;
export type Runner = (typeof runners)[number];

/** The application and the test runner for which the test is written. */
export interface RecordOptions {
  /** Path of the module with the definitions, as the test imports it. */
  app: string;
  /** Default `vitest`. */
  runner?: Runner;
}

/** Two files that belong into the same folder. */
export interface RecordedTest {
  /** `<instance>.history.json` and its content. */
  history: { name: string; text: string };
  /** `<instance>.test.ts` and its content. */
  test: { name: string; text: string };
}

export function recordedTest(
  instanceId: string,
  file: HistoryFile,
  { app, runner = "vitest" }: RecordOptions,
): RecordedTest {
  const history = `${instanceId}.history.json`;
  const text = [
    'import { readFileSync } from "node:fs";',
    ...(runner === "jest" ? [] : [`import { test } from ${JSON.stringify(runner)};`]),
    'import { expectReplay } from "holdfast/testing";',
    `import * as app from ${JSON.stringify(app)};`,
    "",
    `test(${JSON.stringify(`the code still does what ${instanceId} has done`)}, async () => {`,
    `  const history = readFileSync(new URL(${JSON.stringify(`./${history}`)}, import.meta.url), "utf8");`,
    "  await expectReplay(app, JSON.parse(history));",
    "});",
    "",
  ].join("\n");
  return {
    history: { name: history, text: `${JSON.stringify(file, null, 2)}\n` },
    test: { name: `${instanceId}.test.ts`, text },
  };
}
