/**
 * `holdfast watch`: shows an instance as it runs, as a tree on a terminal and as one line per event
 * elsewhere.
 */
import type { Command } from "commander";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { exitCodes } from "../terminal/exit-codes.ts";
import { untilInterrupted } from "../terminal/interrupt.ts";
import { wholeNumber } from "../terminal/options.ts";

const redrawMs = 500;

export const watchCommand = (cli: Cli): Command =>
  clientCommand("watch", "watch an instance until it ends: its work, sessions, timers and children")
    .argument("<id>", "instance id")
    .option("--depth <n>", "children of children, so deep", wholeNumber, 3)
    .action((id: string, options: ClientOptions & { depth: number }) =>
      withClient(cli, options, async (session) => {
        const { show } = await import("./show.ts");
        const { depth } = options;
        const status = await untilInterrupted((signal) =>
          show(session, id, { signal, everyMs: redrawMs, depth }),
        );
        if (status === "interrupted") return exitCodes.interrupted;
        return status === "completed" ? exitCodes.ok : exitCodes.failed;
      }),
    );
