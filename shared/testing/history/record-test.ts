/** Keeps what really happened as a test: the history of a live instance, and a file that runs the code over it. */
import type { App } from "../../definitions/index.ts";
import { collectApp } from "../../definitions/index.ts";
import { entriesOf } from "../../sdk/history-file.ts";
import { type Client, HistoryFile, replayHistory } from "../../sdk/index.ts";
import { historyTable } from "./history-table.ts";

/** For whom the test is written. */
export interface RecordOptions {
  /** The module with the definitions, as the test imports it. */
  app: string;
  /** Default `vitest`. */
  runner?: "vitest" | "jest" | "node:test";
}

/** Two files that belong next to each other. */
export interface RecordedTest {
  /** `<instance>.history.json` and what to write into it. */
  history: { name: string; text: string };
  /** `<instance>.test.ts` and what to write into it. */
  test: { name: string; text: string };
}

/** Reads the history of an instance, running or over, and writes a test that replays it against the code. */
export async function recordTest(
  client: Pick<Client, "historyFile">,
  instanceId: string,
  { app, runner = "vitest" }: RecordOptions,
): Promise<RecordedTest> {
  const file = await client.historyFile(instanceId);
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

/**
 * Runs the code over a recorded history. Rejects where it would have done something else, with the event where they
 * part and the history as a table.
 */
export async function expectReplay(
  app: App | Readonly<Record<string, unknown>>,
  recorded: unknown,
): Promise<void> {
  const file = HistoryFile.parse(recorded);
  const outcome = await replayHistory(collectApp({ app }), file);
  if (outcome.kind === "agrees") return;
  const { instanceId, execution, event, message, hint } = outcome;
  const entries = entriesOf(file.commits).filter((entry) => Math.max(1, entry.execution) === execution);
  const where = event === undefined ? "" : ` at event ${event}`;
  throw new Error(
    [
      `the code does something else than ${instanceId} has done${where}: ${message}`,
      ...(hint === undefined ? [] : [hint]),
      "",
      historyTable(entries, event),
    ].join("\n"),
  );
}
