/** What all commands share that talk to a running installation. */
import { Command } from "commander";
import type { Bus, Subjects } from "../../../shared/bus/index.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import type { EngineConfig, Environment } from "../../config.ts";
import type { ExitCode } from "../terminal/exit-codes.ts";
import { type Format, Output, type Streams } from "../terminal/output.ts";
import { paintFor } from "../terminal/paint.ts";
import type { NatsChoice } from "./find-nats.ts";

/** The input and output of one run of the command line, and its exit code. */
export interface Cli extends Streams {
  readonly env: Environment;
  exitCode: ExitCode;
}

export interface FormatOptions {
  json?: boolean;
  jsonl?: boolean;
  verbose?: boolean;
}

export interface ClientOptions extends NatsChoice, FormatOptions {}

export interface CliConnection {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly client: Client;
  readonly config: EngineConfig;
  readonly dashboard: string | undefined;
  readonly out: Output;
}

export const withFormat = (command: Command): Command =>
  command
    .option("--json", "one line of JSON instead of text")
    .option("--jsonl", "JSON, a line for each item")
    .option("-v, --verbose", "say on stderr how it is done");

/** Adds the options that choose the server, the same on every command. */
export const withServer = (command: Command): Command =>
  command
    .option("--nats-url <url>", "NATS server (NATS_URL; else the `holdfast dev` of this folder)")
    .option("--context <name>", "a saved context (`holdfast context`)")
    .option("--prefix <prefix>", "prefix of the installation (HOLDFAST_PREFIX)")
    .option("--data-dir <folder>", "data folder of the `holdfast dev` to talk to (.holdfast)");

export const clientCommand = (name: string, description: string): Command =>
  withServer(withFormat(new Command(name).description(description)));

export function outputOf(cli: Cli, options: FormatOptions): Output {
  const format: Format = options.jsonl ? "jsonl" : options.json ? "json" : "text";
  const paint = paintFor(cli.env, cli.stdout);
  return new Output(cli, format, { paint, verbose: options.verbose === true });
}

/**
 * Connects, runs the action, closes: the connection never outlives the command. The client is loaded only
 * now.
 */
export async function withClient(
  cli: Cli,
  options: ClientOptions,
  act: (connection: CliConnection) => Promise<ExitCode | undefined>,
): Promise<void> {
  const { openConnection } = await import("./open-connection.ts");
  const connection = await openConnection(cli, options);
  try {
    const code = await act(connection);
    if (code !== undefined) cli.exitCode = code;
  } finally {
    await connection.bus.close();
  }
}
