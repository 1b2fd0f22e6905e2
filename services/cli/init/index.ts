/** `holdfast init <folder>`: a small application to begin with. Writes only into a folder that is new or empty. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Command } from "commander";
import { Fault } from "../../../shared/errors/index.ts";
import { type Cli, outputOf } from "../connection/client-command.ts";
import { dependencyAsInstalled } from "./dependency.ts";

export const initCommand = (cli: Cli): Command =>
  new Command("init")
    .description("write a small application with a session and a test into a new folder")
    .argument("<folder>", "a folder that does not exist yet, or is empty")
    .option(
      "--holdfast <version>",
      "version of holdfast to depend on, or a path like file:../holdfast.tgz (default: what this command runs from)",
    )
    .option("--json", "one line of JSON instead of text")
    .action(async (folder: string, options: { holdfast?: string; json?: boolean }) => {
      const { firstFiles } = await import("./first-files.ts");
      const target = resolve(folder);
      if (existsSync(target) && readdirSync(target).length > 0) {
        throw new Fault("config", {
          code: "folder_not_empty",
          message: `${target} is not empty: nothing was written`,
          hint: "Name a folder that does not exist yet.",
        });
      }
      const name =
        basename(target)
          .toLowerCase()
          .replaceAll(/[^a-z0-9-]+/g, "-") || "app";
      const files = firstFiles(name, options.holdfast ?? dependencyAsInstalled());
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(target, path)), { recursive: true });
        writeFileSync(join(target, path), text);
      }
      const out = outputOf(cli, options);
      out.data({ folder: target, files: Object.keys(files) }, () =>
        [
          `${target} has an application with an orchestration, an activity and a session. Next:`,
          `  cd ${folder} && npm install`,
          "  npm test        # runs it once, with everything it needs, and checks the result",
          "  npm run dev     # serves it; then, in another terminal:",
          `  npx holdfast start measure --input '{"words":["hold","fast"]}' --wait`,
        ].join("\n"),
      );
    });
