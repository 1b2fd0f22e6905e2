/** dead list | show | retry | discard */

import { Command } from "commander";
import { count } from "../../../shared/wording/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { deadTable, shownLetter } from "../render/dead-letters.ts";
import { type Confirmed, confirm, destructive } from "../terminal/confirm.ts";
import { wholeNumber } from "../terminal/options.ts";

export const deadCommands = (cli: Cli): Command =>
  new Command("dead")
    .description("dead letters: messages that could not be processed, with the reason")
    .addCommand(list(cli))
    .addCommand(show(cli))
    .addCommand(retry(cli))
    .addCommand(discard(cli));

function list(cli: Cli): Command {
  return clientCommand("list", "list dead letters, latest first")
    .option("--limit <n>", "at most so many", wholeNumber, 50)
    .option("--before <seq>", "only those before this one", wholeNumber)
    .action((options: ClientOptions & { limit: number; before?: number }) =>
      withClient(cli, options, async ({ client, out }) => {
        const page = await client.dead.list({ limit: options.limit, before: options.before });
        out.list(page.letters, () => (page.total === 0 ? "no dead letters" : deadTable(page, out.paint)));
        return undefined;
      }),
    );
}

function show(cli: Cli): Command {
  return clientCommand("show", "show one dead letter with its body")
    .argument("<seq>", "its number", wholeNumber)
    .action((seq: number, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const letter = await client.dead.show(seq);
        out.data(letter, () => shownLetter(letter, out.paint));
        return undefined;
      }),
    );
}

function retry(cli: Cli): Command {
  return destructive(clientCommand("retry", "publish the original messages again, then remove the letters"))
    .argument("<seq...>", "their numbers", numbers)
    .action(async (seqs: number[], options: ClientOptions & Confirmed) => {
      const question = `retry ${count(seqs.length, "dead letter")}: what they ask for is done again`;
      if (!(await confirm(cli, options, question))) return;
      await withClient(cli, options, async ({ client, out }) => {
        for (const seq of seqs) {
          const { subject } = await client.dead.retry(seq);
          out.data({ seq, subject }, () => `${seq} sent to ${subject}`);
        }
        return undefined;
      });
    });
}

function discard(cli: Cli): Command {
  return destructive(clientCommand("discard", "remove dead letters for good"))
    .argument("<seq...>", "their numbers", numbers)
    .action(async (seqs: number[], options: ClientOptions & Confirmed) => {
      const question = `discard ${count(seqs.length, "dead letter")}: they are gone for good`;
      if (!(await confirm(cli, options, question))) return;
      await withClient(cli, options, async ({ client, out }) => {
        for (const seq of seqs) await client.dead.discard(seq);
        out.done(`${count(seqs.length, "dead letter")} discarded`);
        return undefined;
      });
    });
}

const numbers = (text: string, before: number[] = []): number[] => [...before, wholeNumber(text)];
