/** `holdfast replay`: checks whether this code makes the decisions that the history records. */

import type { Command } from "commander";
import { count } from "../../../shared/wording/index.ts";
import {
  type Cli,
  type ClientOptions,
  clientCommand,
  outputOf,
  withClient,
} from "../connection/client-command.ts";
import { type ExitCode, exitCodes } from "../terminal/exit-codes.ts";
import type { Output } from "../terminal/output.ts";

interface ReplayOptions extends ClientOptions {
  app?: string;
}

export const replayCommand = (cli: Cli): Command =>
  clientCommand("replay", "run code over a stored history and report the first disagreement")
    .argument("<history>", "a file (`history --export`, “Download history”), - for stdin, or an instance id")
    .option("--app <module>", "your application, TypeScript or JavaScript (HOLDFAST_APP)")
    .action(async (given: string, options: ReplayOptions) => {
      const { loadApp } = await import("../../../shared/app-loading/load-app.ts");
      const { readHistoryFile } = await import("../connection/read-history-file.ts");
      const app = await loadApp(options.app ?? cli.env.HOLDFAST_APP);
      const fromFile = readHistoryFile(given);
      if (fromFile) {
        cli.exitCode = await report(outputOf(cli, options), app, fromFile);
        return;
      }
      await withClient(cli, options, async ({ client, out }) =>
        report(out, app, await client.historyFile(given)),
      );
    });

type Parameters = [
  out: Output,
  app: import("../../../shared/definitions/index.ts").App,
  file: import("../../../shared/sdk/index.ts").HistoryFile,
];

async function report(...[out, app, file]: Parameters): Promise<ExitCode> {
  const { replayHistory } = await import("../../../shared/sdk/index.ts");
  const outcome = await replayHistory(app, file);
  out.data(outcome, () =>
    outcome.kind === "agrees"
      ? `${file.instanceId}: the code agrees with ${count(outcome.events, "event")} of ${count(outcome.executions, "execution")}`
      : [
          `${file.instanceId}: ${outcome.message} (${outcome.code})`,
          `  in execution ${outcome.execution}${outcome.event === undefined ? "" : `, event ${outcome.event}`}`,
          ...(outcome.hint === undefined ? [] : [`  ${outcome.hint}`]),
        ].join("\n"),
  );
  return outcome.kind === "agrees" ? exitCodes.ok : exitCodes.failed;
}
