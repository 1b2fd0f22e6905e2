/** `holdfast record-test`: saves the history of an instance as a test of the code. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { Fault } from "../../../shared/errors/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";

interface RecordTestOptions extends ClientOptions {
  app: string;
  runner: string;
  out: string;
  force?: boolean;
}

export const recordTestCommand = (cli: Cli): Command =>
  clientCommand("record-test", "write a test that runs your code over what an instance has done")
    .argument("<id>", "instance id, running or over")
    .requiredOption("--app <module>", "your application, as the test imports it")
    .option("--runner <name>", "vitest, jest or node:test", "vitest")
    .option("--out <folder>", "where the two files go", ".")
    .option("--force", "replace files that are there")
    .action((id: string, { app, runner, out: folder, force = false, ...options }: RecordTestOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const { recordedTest, runners } = await import("../../../shared/sdk/internal.ts");
        const wanted = runners.find((each) => each === runner);
        if (wanted === undefined)
          throw new Fault("config", {
            code: "invalid_option",
            message: `--runner ${runner}: there are ${runners.join(", ")}`,
          });
        const recorded = recordedTest(id, await client.historyFile(id), { app, runner: wanted });
        const files = [recorded.history, recorded.test].map(({ name, text }) => ({
          path: join(folder, name),
          text,
        }));
        const there = files.find(({ path }) => existsSync(path));
        if (there && !force)
          throw new Fault("config", {
            code: "invalid_option",
            message: `${there.path} is there already: choose another --out, or replace it with --force`,
          });
        for (const { path, text } of files) await writeFile(path, text);
        out.data({ files: files.map(({ path }) => path) }, () => files.map(({ path }) => path).join("\n"));
      }),
    );
