/** What all commands that talk to a running installation have in common. */
import { Command } from "commander";
import { type Bus, connectBus, type Subjects, subjects } from "../../shared/bus/index.ts";
import { silent } from "../../shared/runtime/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import type { EngineConfig, Environment } from "../config.ts";
import { connectionSettings } from "../run-service.ts";
import type { ExitCode } from "./exit-codes.ts";
import { cliConfig, type NatsChoice } from "./find-nats.ts";
import { Output, type Streams } from "./output.ts";

/** What a run of the command line is given, and where it leaves its verdict. */
export interface Cli extends Streams {
  readonly env: Environment;
  exitCode: ExitCode;
}

export interface ClientOptions extends NatsChoice {
  json?: boolean;
}

export interface Session {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly client: Client;
  readonly config: EngineConfig;
  readonly out: Output;
}

export const clientCommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .option("--json", "one line of JSON instead of text")
    .option("--nats-url <url>", "NATS server (NATS_URL; else the `holdfast dev` of this folder)")
    .option("--prefix <prefix>", "prefix of the installation (HOLDFAST_PREFIX)")
    .option("--data-dir <folder>", "data folder of the `holdfast dev` to talk to (.holdfast)");

/** Connects, acts, closes; the connection never outlives the command. */
export async function withClient(
  cli: Cli,
  options: ClientOptions,
  act: (session: Session) => Promise<ExitCode | undefined>,
): Promise<void> {
  const config = cliConfig(options, cli.env);
  const names = subjects(config.prefix);
  const bus = await connectBus({ ...connectionSettings(config, names, "holdfast-cli"), announce: silent });
  try {
    const client = new Client({ bus, names });
    const code = await act({ bus, names, client, config, out: new Output(cli, options.json === true) });
    if (code !== undefined) cli.exitCode = code;
  } finally {
    await bus.close();
  }
}
