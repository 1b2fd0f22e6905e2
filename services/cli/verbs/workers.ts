/** workers list | describe | drain */
import { Command } from "commander";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { shownWorker, workerTable } from "../render/workers.ts";
import { type Confirmed, confirm, destructive } from "../terminal/confirm.ts";

export const workerCommands = (cli: Cli): Command =>
  new Command("workers")
    .description("workers: what they hold, what they run; let one go")
    .addCommand(list(cli))
    .addCommand(describe(cli))
    .addCommand(drain(cli));

function list(cli: Cli): Command {
  return clientCommand("list", "list the workers alive").action((options: ClientOptions) =>
    withClient(cli, options, async ({ client, out }) => {
      const workers = await client.workers.list();
      const text = () => workerTable(workers, Date.now(), out.paint);
      out.list(workers, () => (workers.length === 0 ? "no workers" : text()));
      return undefined;
    }),
  );
}

function describe(cli: Cli): Command {
  return clientCommand("describe", "show one worker: what it serves, holds and has loaded")
    .argument("<id>", "worker id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const worker = await client.workers.describe(id);
        out.data(worker, () => shownWorker(worker, Date.now(), out.paint));
        return undefined;
      }),
    );
}

function drain(cli: Cli): Command {
  return destructive(clientCommand("drain", "let a worker finish what it has and go"))
    .argument("<id>", "worker id")
    .action(async (id: string, options: ClientOptions & Confirmed) => {
      const question = `drain ${id}: it takes nothing new, gives its sessions up and ends`;
      if (!(await confirm(cli, options, question))) return;
      await withClient(cli, options, async ({ client, out }) => {
        await client.workers.drain(id);
        out.done(`${id} drains`);
        return undefined;
      });
    });
}
