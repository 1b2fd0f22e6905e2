import { connectBus, subjects } from "../../../shared/bus/index.ts";
import { maskUrl, silent } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/index.ts";
import { connectionSettings } from "../../run-service.ts";
import { type Cli, type CliConnection, type ClientOptions, outputOf } from "./client-command.ts";
import { cliConfig } from "./find-nats.ts";

export async function openConnection(cli: Cli, options: ClientOptions): Promise<CliConnection> {
  const out = outputOf(cli, options);
  const { config, from, dashboard } = cliConfig(options, cli.env);
  const prefix = config.prefix === "" ? "" : `, prefix ${config.prefix}`;
  out.detail(`NATS at ${maskUrl(config.nats.url ?? "")} (${from})${prefix}`);
  const names = subjects(config.prefix);
  const bus = await connectBus({ ...connectionSettings(config, names, "holdfast-cli"), announce: silent });
  return { bus, names, client: new Client({ bus, names }), config, dashboard, out };
}
