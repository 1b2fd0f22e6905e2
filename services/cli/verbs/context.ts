/** context add | use | list | remove */
import { isAbsolute, resolve } from "node:path";
import { Command } from "commander";
import { maskUrl } from "../../../shared/runtime/index.ts";
import { type Cli, type FormatOptions, outputOf, withFormat } from "../connection/client-command.ts";
import { table } from "../terminal/text.ts";

export const contextCommands = (cli: Cli): Command =>
  new Command("context")
    .description("saved installations: which server, which credentials, which prefix")
    .addCommand(add(cli))
    .addCommand(use(cli))
    .addCommand(list(cli))
    .addCommand(remove(cli));

const contextCommand = (name: string, what: string): Command =>
  withFormat(new Command(name).description(what));

async function contextsOf(cli: Cli) {
  const { Contexts } = await import("../../../shared/sdk/where/index.ts");
  return new Contexts(cli.env);
}

interface AddOptions extends FormatOptions {
  natsUrl: string;
  creds?: string;
  prefix?: string;
  use?: boolean;
}

function add(cli: Cli): Command {
  return contextCommand("add", "save a context, or replace it")
    .argument("<name>", "name of the context")
    .requiredOption("--nats-url <url>", "NATS server, or several with commas")
    .option("--creds <file>", "path of a NATS credentials file")
    .option("--prefix <prefix>", "prefix of the installation")
    .option("--use", "use it from now on")
    .action(async (name: string, options: AddOptions) => {
      const { natsUrl, creds, prefix } = options;
      const contexts = await contextsOf(cli);
      const path = creds === undefined || isAbsolute(creds) ? creds : resolve(creds);
      contexts.add(
        name,
        {
          natsUrl,
          ...(path === undefined ? {} : { creds: path }),
          ...(prefix === undefined ? {} : { prefix }),
        },
        options.use === true,
      );
      outputOf(cli, options).done(`context ${name} saved in ${contexts.path}`);
    });
}

function use(cli: Cli): Command {
  return contextCommand("use", "make a context the current one")
    .argument("<name>", "name of the context")
    .action(async (name: string, options: FormatOptions) => {
      (await contextsOf(cli)).use(name);
      outputOf(cli, options).done(
        `context ${name} is used where no server is named and no \`holdfast dev\` runs in the folder`,
      );
    });
}

interface ContextRow {
  name: string;
  current: boolean;
  natsUrl: string;
  creds?: string;
  prefix?: string;
}

function list(cli: Cli): Command {
  return contextCommand("list", "list the saved contexts").action(async (options: FormatOptions) => {
    const out = outputOf(cli, options);
    const { current, contexts } = (await contextsOf(cli)).read();
    const rows: ContextRow[] = Object.entries(contexts)
      .map(([name, { natsUrl, ...rest }]) => ({
        name,
        current: name === current,
        natsUrl: maskUrl(natsUrl),
        ...rest,
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const text = () =>
      table(
        rows,
        [
          { title: "", value: (row) => (row.current ? "*" : ""), style: () => "green" },
          { title: "NAME", value: (row) => row.name },
          { title: "SERVER", value: (row) => row.natsUrl },
          { title: "PREFIX", value: (row) => row.prefix },
          { title: "CREDENTIALS", value: (row) => row.creds },
        ],
        out.paint,
      );
    out.list(rows, () => (rows.length === 0 ? "no contexts" : text()));
  });
}

function remove(cli: Cli): Command {
  return contextCommand("remove", "forget a context")
    .argument("<name>", "name of the context")
    .action(async (name: string, options: FormatOptions) => {
      (await contextsOf(cli)).remove(name);
      outputOf(cli, options).done(`context ${name} removed`);
    });
}
