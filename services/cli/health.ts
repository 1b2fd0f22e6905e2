import { Command } from "commander";
import { askHealth } from "../health.ts";
import type { Cli } from "./connection/client-command.ts";

export const healthCommand = (cli: Cli): Command =>
  new Command("health")
    .description("whether the service of this machine serves, asked on its METRICS_PORT")
    .action(async () => {
      cli.exitCode = await askHealth(cli.env, cli.stdout);
    });
