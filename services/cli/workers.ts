/** workers list | drain */
import { Command } from "commander";
import type { WorkerInfo } from "../../schemas/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "./client-command.ts";
import { span, table } from "./output.ts";

export function workerCommands(cli: Cli): Command {
  return new Command("workers")
    .description("workers: what they hold, what they run; let one go")
    .addCommand(list(cli))
    .addCommand(drain(cli));
}

function list(cli: Cli): Command {
  return clientCommand("list", "list the workers alive").action((options: ClientOptions) =>
    withClient(cli, options, async ({ client, out }) => {
      const workers = await client.workers.list();
      out.data(workers, () => (workers.length === 0 ? "no workers" : workerTable(workers, Date.now())));
      return undefined;
    }),
  );
}

function drain(cli: Cli): Command {
  return clientCommand("drain", "let a worker finish what it has and go")
    .argument("<id>", "worker id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        await client.workers.drain(id);
        out.done(`${id} drains`);
        return undefined;
      }),
    );
}

const used = ({ used, max }: { used: number; max: number }): string => `${used}/${max}`;

const workerTable = (workers: readonly WorkerInfo[], now: number): string =>
  table(workers, [
    { title: "ID", value: (worker) => worker.workerId },
    { title: "HOST", value: (worker) => worker.host },
    { title: "PID", value: (worker) => worker.pid, align: "right" },
    { title: "STATE", value: (worker) => (worker.draining ? "draining" : "serving") },
    { title: "ACTIVITIES", value: (worker) => used(worker.slots.activities), align: "right" },
    { title: "SESSIONS", value: (worker) => used(worker.slots.sessions), align: "right" },
    { title: "CALLS", value: (worker) => used(worker.slots.calls), align: "right" },
    { title: "TAGS", value: (worker) => worker.tags.join(",") },
    { title: "DEVICE", value: (worker) => worker.device },
    { title: "MEMORY", value: (worker) => `${Math.round(worker.rssBytes / 1_048_576)} MiB`, align: "right" },
    { title: "SEEN", value: (worker) => `${span(Math.max(0, now - worker.seenAt))} ago`, align: "right" },
  ]);
