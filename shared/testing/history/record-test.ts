/** Saves the history of a live instance as a test, with a file that replays the code over it. */
import type { App } from "../../definitions/index.ts";
import { collectApp } from "../../definitions/index.ts";
import { type Client, HistoryFile, replayHistory } from "../../sdk/index.ts";
import { entriesOf, type RecordedTest, type RecordOptions, recordedTest } from "../../sdk/internal.ts";
import { historyTable } from "./history-table.ts";

export type { RecordedTest, RecordOptions };

/**
 * Reads the history of a running or ended instance, and returns a test that replays it against the code.
 *
 * @example
 * ```ts
 * const { history, test } = await recordTest(client, "order-7", { app: "./app.ts" });
 * writeFileSync(history.name, history.text);
 * writeFileSync(test.name, test.text);
 * ```
 */
export const recordTest = async (
  client: Pick<Client, "historyFile">,
  instanceId: string,
  options: RecordOptions,
): Promise<RecordedTest> => recordedTest(instanceId, await client.historyFile(instanceId), options);

/**
 * Replays the code over a recorded history. Rejects if the code makes another decision, with the first
 * differing event and the history as a table.
 *
 * @example
 * ```ts
 * import * as app from "./app.ts";
 *
 * test("the code still agrees with order-7", async () => {
 *   await expectReplay(app, JSON.parse(readFileSync("order-7.history.json", "utf8")));
 * });
 * ```
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
