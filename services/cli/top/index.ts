/** `holdfast top`: rates, queues, workers and sessions, refreshed continuously. */
import { type Command, Option } from "commander";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { exitCodes } from "../terminal/exit-codes.ts";
import { untilInterrupted } from "../terminal/interrupt.ts";
import { duration, wholeNumber } from "../terminal/options.ts";

export const topCommand = (cli: Cli): Command =>
  clientCommand("top", "show rates, queues, workers and sessions, live")
    .addOption(new Option("--every <duration>", "look so often").argParser(duration).default(1000, "1s"))
    .option("--count <n>", "so many times; without a terminal once, unless --jsonl", wholeNumber)
    .action((options: ClientOptions & { every: number; count?: number }) =>
      withClient(cli, options, async (session) => {
        const { showTop } = await import("./show.ts");
        const ended = await untilInterrupted((signal) => showTop(session, { ...options, signal }));
        return ended === "interrupted" ? exitCodes.interrupted : exitCodes.ok;
      }),
    );
