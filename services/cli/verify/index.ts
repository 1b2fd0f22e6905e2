/**
 * `holdfast verify`: reads the streams of a running installation and reports violated laws. Writes nothing.
 */
import type { Command } from "commander";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { exitCodes } from "../terminal/exit-codes.ts";
import { duration } from "../terminal/options.ts";

interface VerifyOptions extends ClientOptions {
  instance?: string;
  since?: number;
  journal?: string;
  app?: string;
  atRest?: boolean;
  lossWithin?: number;
}

export const verifyCommand = (cli: Cli): Command =>
  clientCommand("verify", "prove from the streams alone that the laws hold, or say where they do not")
    .option("--instance <id>", "this instance only")
    .option("--since <duration>", "leave out what ended longer ago, like 2h", duration)
    .option("--journal <file>", "what users noted while it ran, a JSON object a line (- for stdin)")
    .option("--app <module>", "run this application over every history too (I5)")
    .option("--at-rest", "nothing should be going on: nothing may be running, queues must be empty")
    .option(
      "--loss-within <duration>",
      "a lost session must be recorded within this of its expiry (I8)",
      duration,
    )
    .action((options: VerifyOptions) =>
      withClient(cli, options, async ({ bus, names, out }) => {
        const { verify } = await import("../../../shared/verify/index.ts");
        const { shownReport } = await import("./shown-report.ts");
        const { journalFrom } = await import("./journal-file.ts");
        const { instance, since, journal, app, atRest, lossWithin } = options;
        let progress = "connected";
        const erase = out.progress(() => progress);
        const report = await verify({
          ...{ bus, names },
          ...(instance !== undefined && { instanceId: instance }),
          ...(since !== undefined && { since: Date.now() - since }),
          ...(journal !== undefined && { journal: journalFrom(journal) }),
          ...(app !== undefined && { app: await loadedApp(app) }),
          ...(atRest !== undefined && { quiet: atRest }),
          ...(lossWithin !== undefined && { lossMs: lossWithin }),
          onProgress: (text) => {
            progress = text;
          },
        }).finally(erase);
        if (instance !== undefined && report.read.instances === undefined && report.ok) {
          out.note(`there is no history of ${instance}`);
          return exitCodes.notFound;
        }
        if (out.format === "jsonl") out.list(report.violations, () => "");
        else out.data(report, () => shownReport(report, out.paint));
        return report.ok ? exitCodes.ok : exitCodes.failed;
      }),
    );

async function loadedApp(module: string) {
  const { loadApp } = await import("../../../shared/app-loading/load-app.ts");
  return loadApp(module);
}
