/** orchestrator, worker, watcher, gateway: runs one service in this process until it is asked to stop. */
import { resolve } from "node:path";
import { Command } from "commander";
import type { Environment } from "../../config.ts";
import { type Cli, withServer } from "../connection/client-command.ts";
import type { NatsChoice } from "../connection/find-nats.ts";

interface ServeOptions extends NatsChoice {
  app?: string;
}

type Run = (env: Environment) => Promise<void>;

/** Each service is loaded only when it is run: a worker need not load the gateway. */
const services: Record<string, { what: string; load: () => Promise<Run> }> = {
  orchestrator: {
    what: "run turns of orchestrations",
    load: async () => (await import("../../orchestrator/main.ts")).runOrchestrator,
  },
  worker: {
    what: "run activities and hold sessions",
    load: async () => (await import("../../worker/main.ts")).runWorker,
  },
  watcher: {
    what: "notice lost sessions, put finished histories away",
    load: async () => (await import("../../watcher/run-watcher.ts")).runWatcher,
  },
  gateway: {
    what: "serve HTTP, the dashboard and metrics",
    load: async () => (await import("../../gateway/run-gateway.ts")).runGateway,
  },
};

export const serveCommands = (cli: Cli): Command[] =>
  Object.entries(services).map(([name, { what, load }]) =>
    withServer(new Command(name).description(what))
      .option("--app <module>", "your application, TypeScript or JavaScript (HOLDFAST_APP)")
      .action(async ({ app, ...choice }: ServeOptions) => {
        const { findNats } = await import("../connection/find-nats.ts");
        const env = findNats(choice, cli.env);
        const run = await load();
        await run(app === undefined ? env : { ...env, HOLDFAST_APP: resolve(app) });
      }),
  );
