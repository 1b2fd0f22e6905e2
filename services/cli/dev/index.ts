/** `holdfast dev`: everything at once, for trying out and for developing. */
import { Command } from "commander";
import { Fault } from "../../../shared/errors/index.ts";
import type { Cli } from "../client-command.ts";
import { defaultDataDir } from "../dev-file.ts";
import { Output } from "../output.ts";
import { runDemo } from "./demo.ts";
import { type RunningDev, runDev } from "./run-dev.ts";

interface Options {
  app?: string;
  dataDir: string;
  workers: string;
  port?: string;
  json?: boolean;
  demo?: boolean;
}

export const devCommand = (cli: Cli): Command =>
  new Command("dev")
    .description("run all services with your application, on a NATS server of its own unless NATS_URL is set")
    .option("--app <module>", "your application, TypeScript or JavaScript (HOLDFAST_APP)")
    .option("--data-dir <folder>", "what is kept: streams, logs", defaultDataDir)
    .option("--workers <n>", "worker processes", "2")
    .option("--port <port>", "port of the NATS server; a free one if not given")
    .option("--json", "one line of JSON when ready, then quiet")
    .option("--demo", "run an example when ready")
    .action(async (options: Options) => {
      const out = new Output(cli, options.json === true);
      const told = untilTold();
      try {
        const app = options.app ?? cli.env.HOLDFAST_APP;
        if (!app) {
          throw new Fault("config", {
            code: "app_missing",
            message: "no application given",
            hint: "Name its module with --app <module> or HOLDFAST_APP, for example --app examples/basics/app.ts.",
          });
        }
        const dev = await runDev({
          app,
          dataDir: options.dataDir,
          workers: wholeNumber(options.workers, "--workers", 0, 64),
          port: options.port === undefined ? undefined : wholeNumber(options.port, "--port", 1, 65_535),
          env: cli.env,
          // Quiet on stdout; what goes wrong is still said.
          onNote: (text) => cli.stderr.write(`${text}\n`),
        });
        try {
          const { natsUrl, pids, dashboard } = dev;
          if (options.json) out.data({ ready: true, natsUrl, dashboard, pids }, () => "");
          else for (const line of welcome(dev, app)) out.note(line);
          if (options.demo) await Promise.race([runDemo(dev, cli.env, out), told.promise]);
          await told.promise;
          out.note("stopping");
        } finally {
          await dev.stop();
        }
        out.note("stopped, nothing left running");
      } finally {
        told.dispose();
      }
    });

function welcome({ natsUrl, dashboard }: RunningDev, app: string): string[] {
  return [
    `ready: ${app} is served${dashboard === undefined ? "" : `, dashboard on ${dashboard}`}`,
    "  npx holdfast start <name> --input '<json>' --wait",
    "  npx holdfast list",
    `  nats --server ${natsUrl} req start.<name> '<json>'`,
    "Ctrl-C stops everything.",
  ];
}

/**
 * A shell that starts us in the background lets us ignore Ctrl-C; listening makes us hear it again. Told twice we go at
 * once: the services stop when they see us gone, and so does the NATS server.
 */
function untilTold(): { promise: Promise<void>; dispose: () => void } {
  const signals = ["SIGINT", "SIGTERM"] as const;
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  let told = false;
  const onSignal = () => {
    if (told) process.exit(130);
    told = true;
    resolve();
  };
  for (const signal of signals) process.on(signal, onSignal);
  return {
    promise,
    dispose: () => {
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}

function wholeNumber(text: string, option: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new Fault("config", {
    code: "invalid_option",
    message: `${option} ${text}: must be a whole number from ${min} to ${max}`,
  });
}
