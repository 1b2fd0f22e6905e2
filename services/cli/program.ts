/** The tree of commands. Building it loads no engine code: a command loads what it needs when it runs. */
import { Command } from "commander";
import { packageVersion } from "../version.ts";
import { completionCommand } from "./completion/index.ts";
import type { Cli } from "./connection/client-command.ts";
import { devCommand } from "./dev/index.ts";
import { doctorCommand } from "./doctor/index.ts";
import { healthCommand } from "./health.ts";
import { initCommand } from "./init/index.ts";
import { securityCommand } from "./security/index.ts";
import { exitCodesHelp } from "./terminal/exit-codes.ts";
import { topCommand } from "./top/index.ts";
import { benchCommand } from "./verbs/bench.ts";
import { contextCommands } from "./verbs/context.ts";
import { deadCommands } from "./verbs/dead.ts";
import { instanceCommands } from "./verbs/instances.ts";
import { messageCommands } from "./verbs/messages.ts";
import { poolCommands } from "./verbs/pools.ts";
import { provisionCommand } from "./verbs/provision.ts";
import { recordTestCommand } from "./verbs/record-test.ts";
import { replayCommand } from "./verbs/replay.ts";
import { scheduleCommands } from "./verbs/schedules.ts";
import { serveCommands } from "./verbs/serve.ts";
import { sessionCommands } from "./verbs/sessions.ts";
import { workerCommands } from "./verbs/workers.ts";
import { verifyCommand } from "./verify/index.ts";
import { watchCommand } from "./watch/index.ts";

/** `explainUsage`: the program prints what is wrong with the arguments; otherwise the caller does. */
export function program(cli: Cli, { explainUsage = true } = {}): Command {
  const root: Command = new Command("holdfast")
    .description("Durable orchestrations on NATS JetStream whose steps can hold on to a worker")
    .version(packageVersion())
    .enablePositionalOptions()
    .addHelpText("after", exitCodesHelp);
  const groups: Record<string, Command[]> = {
    "Run it:": [
      initCommand(cli),
      devCommand(cli),
      ...serveCommands(cli),
      provisionCommand(cli),
      healthCommand(cli),
    ],
    "Instances:": [
      ...instanceCommands(cli),
      ...messageCommands(cli),
      watchCommand(cli),
      replayCommand(cli),
      recordTestCommand(cli),
    ],
    "The installation:": [
      sessionCommands(cli),
      poolCommands(cli),
      workerCommands(cli),
      scheduleCommands(cli),
      deadCommands(cli),
      topCommand(cli),
      doctorCommand(cli),
      verifyCommand(cli),
    ],
    "Around it:": [
      contextCommands(cli),
      securityCommand(cli),
      completionCommand(cli, () => root),
      benchCommand(cli),
    ],
  };
  for (const [group, commands] of Object.entries(groups)) {
    for (const command of commands) root.addCommand(command.helpGroup(group));
  }
  for (const { command, path } of everyOne(root)) {
    command.exitOverride();
    command.configureOutput({
      writeOut: (text) => cli.stdout.write(text),
      writeErr: (text) => cli.stderr.write(text),
      outputError: (text, write) =>
        explainUsage &&
        write(`${text.replace(/^error: /, "holdfast: ")}  \`${path} --help\` says what it takes.\n`),
    });
  }
  return root;
}

const everyOne = (command: Command, before = ""): { command: Command; path: string }[] => {
  const path = `${before}${command.name()}`;
  return [{ command, path }, ...command.commands.flatMap((one) => everyOne(one, `${path} `))];
};
