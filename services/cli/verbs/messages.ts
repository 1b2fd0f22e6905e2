/** query, update */
import type { Command } from "commander";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { natsRequest } from "../connection/nats-line.ts";
import { duration } from "../terminal/options.ts";
import { readInput } from "../terminal/read-input.ts";

export const messageCommands = (cli: Cli): Command[] => [query(cli), update(cli)];

function query(cli: Cli): Command {
  return clientCommand("query", "ask the code of an instance, running or over; changes nothing")
    .argument("<id>", "instance id")
    .argument("[name]", "name of the query; without it the names there are")
    .argument("[input]", "input as JSON, @file, or - for stdin")
    .option("--timeout <duration>", "at most so long, like 30s", duration, 10_000)
    .action(
      async (
        id: string,
        name: string | undefined,
        input: string | undefined,
        options: ClientOptions & { timeout: number },
      ) => {
        if (name === undefined) return await showNames(cli, id, options);
        const value = readInput(input, "the input");
        await withClient(cli, options, async ({ client, config, names, out }) => {
          out.detail(natsRequest(config, { subject: names.query(id, name), value }));
          const answer = await client.query(id, name, value, { timeout: options.timeout });
          out.data(answer, () => JSON.stringify(answer ?? null, null, 2));
          return undefined;
        });
      },
    );
}

/** Lists what can be sent to an instance, for people who do not have its code at hand. */
const showNames = (cli: Cli, id: string, options: ClientOptions & { timeout: number }): Promise<void> =>
  withClient(cli, options, async ({ client, out }) => {
    const names = await client.messages(id, { timeout: options.timeout });
    const line = (what: string, of: readonly string[]) => `${what}  ${of.join(", ") || "none"}`;
    out.data(names, () =>
      [
        line("queries", names.queries),
        line("updates", names.updates),
        line(
          "signals",
          names.signals.map((name) => `${name} (waited for)`),
        ),
      ].join("\n"),
    );
    return undefined;
  });

interface UpdateOptions extends ClientOptions {
  id?: string;
  wait: boolean;
  timeout: number;
}

function update(cli: Cli): Command {
  return clientCommand("update", "change an instance and print the answer of its code")
    .argument("<id>", "instance id")
    .argument("[name]", "name of the update; without it the names there are")
    .argument("[input]", "input as JSON, @file, or - for stdin")
    .option("--id <id>", "id of the update; the same id again changes nothing and prints the same answer")
    .option("--no-wait", "only until it is accepted")
    .option("--timeout <duration>", "at most so long, like 30s", duration, 30_000)
    .action(
      async (id: string, name: string | undefined, input: string | undefined, options: UpdateOptions) => {
        if (name === undefined) return await showNames(cli, id, options);
        const value = readInput(input, "the input");
        await withClient(cli, options, async ({ client, config, names, out }) => {
          out.detail(
            natsRequest(config, {
              subject: `${names.prefix ? `${names.prefix}.` : ""}update.${id}.${name}`,
              value,
            }),
          );
          const { timeout } = options;
          const started = await client.startUpdate(id, name, value, { id: options.id, timeout });
          const { updateId } = started;
          if (!options.wait) {
            out.data({ updateId }, () => updateId);
            return undefined;
          }
          const answer = await started.result({ timeout });
          out.data({ updateId, answer }, () => JSON.stringify(answer ?? null, null, 2));
          return undefined;
        });
      },
    );
}
