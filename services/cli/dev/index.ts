/** `holdfast dev`: runs all services on one machine, for trying out and for development. */
import { Command } from "commander";
import { Fault, HoldfastError } from "../../../shared/errors/index.ts";
import { defaultDataDir, maskUrl, withoutLogin } from "../../../shared/runtime/index.ts";
import type { RunDemo } from "../../../shared/sdk/index.ts";
import type { Cli } from "../connection/client-command.ts";
import { quoted } from "../connection/nats-line.ts";
import { Output } from "../terminal/output.ts";
import { readInput } from "../terminal/read-input.ts";
import { errorLine } from "../terminal/report-error.ts";
import type { RunningDev } from "./run-dev.ts";
import { Screen } from "./screen.ts";

interface Options {
  app?: string;
  dataDir: string;
  workers: string;
  port?: string;
  watch?: boolean;
  roles?: boolean;
  json?: boolean;
  demo?: string;
  demoInput?: string;
  once?: boolean;
}

export const devCommand = (cli: Cli): Command =>
  new Command("dev")
    .description("run all services with your application, on a NATS server of its own unless NATS_URL is set")
    .option("--app <module>", "your application, TypeScript or JavaScript (HOLDFAST_APP)")
    .option("--data-dir <folder>", "what is kept: streams, logs", defaultDataDir)
    .option("--workers <n>", "worker processes", "2")
    .option(
      "--port <port>",
      "port of the NATS server; if not given, a free one, the same at every start in this folder",
    )
    .option(
      "--watch",
      "load your code again when it changes; instances go on, and what no longer fits is parked",
    )
    .option("--roles", "give each service the NATS user and the rights of its role, as in production")
    .option("--json", "one line of JSON when ready, then quiet")
    .option("--demo <module>", "when ready, run what the module exports as runDemo")
    .option("--demo-input <json>", "for runDemo: JSON, @file, or - for stdin")
    .option("--once", "stop after the demo; the exit code is 1 if it failed")
    .action(async (options: Options) => {
      const json = options.json === true;
      const out = new Output(cli, json);
      const screen = new Screen(cli.stderr);
      const say = (text: string) => {
        if (!json) screen.note(text);
      };
      const stopRequest = untilAskedToStop();
      try {
        // Loaded only now: the other commands do not need it.
        const [{ runDev }, { showDemo }] = await Promise.all([import("./run-dev.ts"), import("./demo.ts")]);
        const app = appOf(options, cli.env);
        const demo = await demoOf(options);
        const dev = await runDev({
          app,
          dataDir: options.dataDir,
          workers: wholeNumber(options.workers, "--workers", 0, 64),
          port: options.port === undefined ? undefined : wholeNumber(options.port, "--port", 1, 65_535),
          watch: options.watch === true,
          roles: options.roles === true,
          env: cli.env,
          stopRequested: stopRequest.promise,
          // Nothing on stdout; problems still go to stderr.
          onNote: (text) => screen.note(text),
        });
        try {
          const { natsUrl, pids, dashboard } = dev;
          if (json) out.data({ ready: true, natsUrl: withoutLogin(natsUrl), dashboard, pids }, () => "");
          else for (const line of welcome(dev, app, options.dataDir)) say(line);
          if (demo) {
            const shown = showDemo(demo.run, dev, cli.env, {
              input: demo.input,
              staysUp: options.once !== true,
              say,
              progress: (...bar) => {
                if (!json) screen.progress(...bar);
              },
            });
            if (options.once) {
              const result = await Promise.race([shown, stopRequest.promise.then(interrupted)]);
              if (json) out.data(result, () => "");
            } else {
              // The services keep running after a failed demo too, so that people can look at the results.
              await Promise.race([shown, stopRequest.promise]).catch((error) => say(errorLine(error, false)));
            }
          }
          if (options.once !== true) await stopRequest.promise;
          say("stopping");
        } finally {
          await dev.stop();
        }
        say("stopped, nothing left running");
      } finally {
        stopRequest.dispose();
      }
    });

function appOf({ app }: Options, env: Cli["env"]): string {
  const named = app ?? env.HOLDFAST_APP;
  if (named) return named;
  throw new Fault("config", {
    code: "app_missing",
    message: "no application given",
    hint: "Name its module with --app <module> or HOLDFAST_APP, for example --app examples/basics/app.ts.",
  });
}

async function demoOf({
  demo,
  demoInput,
  once,
}: Options): Promise<{ run: RunDemo; input: unknown } | undefined> {
  if (demo !== undefined) {
    const { loadDemo } = await import("./demo.ts");
    return { run: await loadDemo(demo), input: readInput(demoInput, "--demo-input") };
  }
  if (demoInput === undefined && !once) return undefined;
  throw new Fault("config", {
    code: "invalid_option",
    message: `${once ? "--once" : "--demo-input"} needs --demo <module>`,
  });
}

function interrupted(): never {
  throw new HoldfastError({ code: "interrupted", message: "stopped before the demo was over" });
}

function welcome({ natsUrl, prefix, dashboard }: RunningDev, app: string, dataDir: string): string[] {
  const where = dataDir === defaultDataDir ? "" : ` --data-dir ${quoted(dataDir)}`;
  const before = prefix === "" ? "" : `${prefix}.`;
  return [
    `ready: ${app} is served${dashboard === undefined ? "" : `, dashboard on ${dashboard}`}`,
    `  npx holdfast start <name> --input '<json>' --wait${where}`,
    `  npx holdfast list${where}`,
    `  nats --server ${maskUrl(natsUrl)} req ${before}start.<name> '<json>'`,
    "Ctrl-C stops everything.",
  ];
}

/**
 * Resolves on the first signal to stop. A shell that starts us in the background makes us ignore Ctrl-C;
 * installing a handler undoes that. A second signal ends this process at once: the services and the NATS
 * server stop when they notice that it is gone.
 */
function untilAskedToStop(): { promise: Promise<void>; dispose: () => void } {
  // SIGHUP: the terminal was closed, which counts as a request to stop.
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  let asked = false;
  const onSignal = () => {
    if (asked) process.exit(130);
    asked = true;
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
