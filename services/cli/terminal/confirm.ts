/** Actions that cannot be undone need a confirmation: a question on a terminal, `--yes` elsewhere. */
import type { Command } from "commander";
import { Fault } from "../../../shared/errors/index.ts";
import type { Cli } from "../connection/client-command.ts";
import { exitCodes } from "./exit-codes.ts";

export interface Confirmed {
  yes?: boolean;
}

export const destructive = (command: Command): Command =>
  command.option("-y, --yes", "do not ask; needed where there is no terminal");

/** True if confirmed. Declined: false, and `cli` has the exit code. Throws without a terminal to ask on. */
export async function confirm(cli: Cli, { yes }: Confirmed, what: string): Promise<boolean> {
  if (yes) return true;
  const { stdin, stderr } = cli;
  if (stdin?.isTTY !== true || stderr.isTTY !== true) {
    throw new Fault("config", {
      code: "confirmation_needed",
      message: `${what}: this must be confirmed, and there is no terminal to ask on`,
      hint: "Add --yes.",
    });
  }
  stderr.write(`${what}. Go on? [y/N] `);
  if (/^y(es)?$/i.test((await line(stdin)).trim())) return true;
  stderr.write("nothing was done\n");
  cli.exitCode = exitCodes.failed;
  return false;
}

async function line(input: NodeJS.ReadableStream): Promise<string> {
  const { createInterface } = await import("node:readline");
  const reader = createInterface({ input, terminal: false });
  try {
    for await (const answer of reader) return answer;
    return ""; // The input was closed without an answer.
  } finally {
    reader.close();
  }
}
