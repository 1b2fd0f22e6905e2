/** pools list | resize | pause | resume | forget */
import { Command } from "commander";
import type { PoolView } from "../../../shared/sdk/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { type Confirmed, confirm, destructive } from "../terminal/confirm.ts";
import { wholeNumber } from "../terminal/options.ts";
import type { Paint } from "../terminal/paint.ts";
import { table } from "../terminal/text.ts";

export const poolCommands = (cli: Cli): Command =>
  new Command("pools")
    .description("pools of sessions: how big they are; resize, pause and resume them")
    .addCommand(list(cli))
    .addCommand(resize(cli))
    .addCommand(
      order(
        cli,
        "pause",
        "let the members of a pool go; its calls wait until it is resumed",
        "its members go",
      ),
    )
    .addCommand(order(cli, "resume", "give a paused pool its members again"))
    .addCommand(
      order(
        cli,
        "forget",
        "withdraw the declaration of a pool that is no longer deployed",
        "it goes with its last user",
      ),
    );

function list(cli: Cli): Command {
  return clientCommand("list", "list pools and their sizes").action((options: ClientOptions) =>
    withClient(cli, options, async ({ client, out }) => {
      const pools = await client.pools.list();
      out.list(pools, () => (pools.length === 0 ? "no pools" : poolTable(pools, out.paint)));
      return undefined;
    }),
  );
}

const poolTable = (pools: readonly PoolView[], paint: Paint): string =>
  table(
    pools,
    [
      { title: "POOL", value: (pool) => pool.poolId },
      { title: "TYPE", value: (pool) => pool.type },
      { title: "SHARING", value: (pool) => pool.sharing },
      { title: "MEMBERS", value: (pool) => String(pool.members), align: "right" },
      {
        title: "MIN-MAX",
        value: (pool) => `${pool.min}-${pool.max}${pool.resized ? " (resized)" : ""}`,
      },
      { title: "USERS", value: (pool) => String(pool.users), align: "right" },
      {
        title: "STATE",
        value: (pool) => (pool.paused ? "paused" : pool.declared ? "declared" : "in use"),
        style: (pool) => (pool.paused ? "yellow" : "green"),
      },
      { title: "ERROR", value: (pool) => pool.error },
    ],
    paint,
  );

function resize(cli: Cli): Command {
  return clientCommand("resize", "change the size of a pool, until its declaration changes")
    .argument("<id>", "pool id")
    .requiredOption("--min <n>", "kept warm; 0 for none", (text) => (text === "0" ? 0 : wholeNumber(text)))
    .requiredOption("--max <n>", "it grows up to this", wholeNumber)
    .action((id: string, options: ClientOptions & { min: number; max: number }) =>
      withClient(cli, options, async ({ client, out }) => {
        await client.pools.resize(id, options);
        out.done(`pool ${id} is to have ${options.min} to ${options.max} members`);
        return undefined;
      }),
    );
}

function order(cli: Cli, verb: "pause" | "resume" | "forget", what: string, question?: string): Command {
  const command = clientCommand(verb, what);
  return (question ? destructive(command) : command)
    .argument("<id>", "pool id")
    .action(async (id: string, options: ClientOptions & Confirmed) => {
      if (question && !(await confirm(cli, options, `${verb} ${id}: ${question}`))) return;
      await withClient(cli, options, async ({ client, out }) => {
        await client.pools[verb](id);
        out.done(`${verb} sent to the keeper of pool ${id}`);
        return undefined;
      });
    });
}
