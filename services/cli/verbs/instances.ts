/**
 * Commands on instances: start, start-again, get, list, history, result, stream, signal, cancel, terminate.
 */
import type { Command } from "commander";
import { HoldfastError, TimeoutError, unparking } from "../../../shared/errors/index.ts";
import type { FlowOptions, InstanceView } from "../../../shared/sdk/index.ts";
import {
  type Cli,
  type CliConnection,
  type ClientOptions,
  clientCommand,
  withClient,
} from "../connection/client-command.ts";
import { natsPub } from "../connection/nats-line.ts";

import { historyTable, instanceTable, shownInstance } from "../render/instances.ts";
import { type Confirmed, confirm, destructive } from "../terminal/confirm.ts";
import { type ExitCode, exitCodes } from "../terminal/exit-codes.ts";
import { choice, duration, statuses, wholeNumber } from "../terminal/options.ts";
import { readInput } from "../terminal/read-input.ts";
import { span } from "../terminal/text.ts";

interface WaitOptions extends ClientOptions {
  timeout?: number;
}

interface StartOptions extends WaitOptions {
  input?: string;
  id?: string;
  delay?: number;
  flow?: string;
  wait?: boolean;
}

export const instanceCommands = (cli: Cli): Command[] => [
  start(cli),
  startAgain(cli),
  get(cli),
  list(cli),
  history(cli),
  result(cli),
  stream(cli),
  signal(cli),
  cancel(cli),
  terminate(cli),
];

function start(cli: Cli): Command {
  return clientCommand("start", "start an orchestration")
    .argument("<name>", "name of the orchestration")
    .option("--input <json>", "input as JSON, @file, or - for stdin")
    .option("--id <id>", "instance id; the same id again changes nothing")
    .option("--delay <duration>", "not before so long from now, like 10m", duration)
    .option("--flow <json>", "limits by key as JSON, @file, or - for stdin: docs/flow-control.md")
    .option("--wait", "wait for the end and print the output")
    .option("--timeout <duration>", "with --wait: at most so long, like 30s", duration)
    .action(async (name: string, options: StartOptions) => {
      const input = readInput(options.input, "--input");
      // The client checks it and reports what is wrong.
      const flow = readInput(options.flow, "--flow") as FlowOptions | undefined;
      await withClient(cli, options, async (session) => {
        const { client, config, names, dashboard, out } = session;
        const { unknownOrchestration, findServing } = await import("./served.ts");
        const served = await findServing(session, name);
        if (served.kind === "unknown") throw unknownOrchestration(name, served.names);
        const { id, delay } = options;
        const { instanceId } = await client.start(name, input, { id, delay, flow });
        const subject = names.start(instanceId, name);
        out.detail(natsPub(config, { subject, value: input, msgId: `start-${instanceId}` }));
        if (dashboard !== undefined) out.detail(`${dashboard}/orchestrations/${instanceId}`);
        if (served.kind === "no_orchestrator")
          out.note(`no orchestrator is running: ${instanceId} is stored and begins when one is started`);
        if (options.wait) return printResult(session, instanceId, options, true);
        out.data({ instanceId }, () => instanceId);
        return undefined;
      });
    });
}

type AgainOptions = ClientOptions &
  Confirmed & { id?: string; status?: InstanceView["status"][]; name?: string; limit: number };

function startAgain(cli: Cli): Command {
  return destructive(
    clientCommand("start-again", "start the same orchestration with the same input, under another id"),
  )
    .argument("[ids...]", "instances; without any, those that --status and --name choose")
    .option("--id <id>", "id of the new instance; for one only")
    .addOption(choice("--status <status...>", "all with this status", statuses))
    .option("--name <name>", "all of this orchestration")
    .option("--limit <n>", "at most so many", wholeNumber, 100)
    .action((ids: string[], options: AgainOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const { status, name, limit } = options;
        const chosen = ids.length > 0 ? ids : await matching(client, { status, name, limit });
        if (options.id !== undefined && chosen.length !== 1)
          throw invalidOption(`--id is for one instance, these are ${chosen.length}`);
        if (
          ids.length === 0 &&
          !(await confirm(
            cli,
            options,
            `start ${chosen.length} again: ${chosen.slice(0, 5).join(", ")}${chosen.length > 5 ? ", …" : ""}`,
          ))
        )
          return exitCodes.failed;
        const started: { of: string; instanceId: string }[] = [];
        for (const of of chosen) {
          const { instanceId } = await client.startAgain(of, { id: options.id });
          started.push({ of, instanceId });
        }
        out.list(started, () => started.map(({ instanceId }) => instanceId).join("\n"));
        return undefined;
      }),
    );
}

async function matching(
  client: CliConnection["client"],
  { status, name, limit }: Pick<AgainOptions, "status" | "name" | "limit">,
): Promise<string[]> {
  if (status === undefined && name === undefined)
    throw invalidOption("which ones? name instances, or choose them with --status and --name");
  return (await client.list({ status, name, limit })).map(({ instanceId }) => instanceId);
}

const invalidOption = (message: string): HoldfastError =>
  new HoldfastError({ code: "invalid_input", message });

function get(cli: Cli): Command {
  return clientCommand("get", "show one instance")
    .argument("<id>", "instance id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const view = await client.status(id);
        out.data(view, () => shownInstance(view, out.paint));
        return undefined;
      }),
    );
}

function list(cli: Cli): Command {
  return clientCommand("list", "list instances, newest first")
    .addOption(choice("--status <status...>", "only these", statuses))
    .option("--name <name>", "only this orchestration")
    .option("--id-prefix <text>", "only ids that begin so")
    .option("--engine", "only the engine's own: keepers of schedules, pools, keyed sessions and limits")
    .option("--limit <n>", "at most so many", wholeNumber, 50)
    .action(
      (
        options: ClientOptions & {
          status?: InstanceView["status"][];
          name?: string;
          idPrefix?: string;
          engine?: boolean;
          limit: number;
        },
      ) =>
        withClient(cli, options, async ({ client, out }) => {
          const { status, name, idPrefix: prefix, engine, limit } = options;
          const views = await client.list({ status, name, prefix, engine, limit });
          out.list(views, () => (views.length === 0 ? "no instances" : instanceTable(views, out.paint)));
          return undefined;
        }),
    );
}

function history(cli: Cli): Command {
  return clientCommand("history", "show the events of an instance")
    .argument("<id>", "instance id")
    .option("--export", "as a file that `replay` and the dashboard take")
    .action((id: string, options: ClientOptions & { export?: boolean }) =>
      withClient(cli, options, async ({ client, out }) => {
        if (options.export) {
          const file = await client.historyFile(id);
          out.data(file, () => JSON.stringify(file));
        } else {
          const entries = await client.history(id);
          out.list(entries, () => historyTable(entries, out.paint));
        }
        return undefined;
      }),
    );
}

function result(cli: Cli): Command {
  return clientCommand("result", "wait for the end of an instance and print its output")
    .argument("<id>", "instance id")
    .option("--timeout <duration>", "at most so long, like 30s", duration)
    .action((id: string, options: WaitOptions) =>
      withClient(cli, options, (session) => printResult(session, id, options, false)),
    );
}

function stream(cli: Cli): Command {
  return clientCommand("stream", "print what the work of an instance writes, live until it ends")
    .argument("<id>", "instance id")
    .option("--after <offset>", "only what comes behind this offset", wholeNumber)
    .option("--no-follow", "only what is there now")
    .action((id: string, { after = 0, ...options }: ClientOptions & { after?: number; follow: boolean }) =>
      withClient(cli, options, async ({ client, out }) => {
        await client.status(id);
        for await (const item of client.stream(id, { after, follow: options.follow })) {
          out.data(item, () => (typeof item.chunk === "string" ? item.chunk : JSON.stringify(item.chunk)));
        }
        return undefined;
      }),
    );
}

function signal(cli: Cli): Command {
  return clientCommand("signal", "send a signal to an instance, also before it was started")
    .argument("<id>", "instance id")
    .argument("<name>", "name of the signal")
    .argument("[payload]", "payload as JSON, @file, or - for stdin")
    .action(async (id: string, name: string, payload: string | undefined, options: ClientOptions) => {
      const value = readInput(payload, "the payload");
      await withClient(cli, options, async ({ client, config, names, out }) => {
        await client.signal(id, name, value);
        out.detail(natsPub(config, { subject: names.signal(id, name), value }));
        const begun = await client.status(id).then(
          ({ name }) => name !== undefined,
          () => false,
        );
        if (!begun) out.note(`${id} has not been started: the signal waits for its start`);
        out.done(`signal ${name} sent to ${id}`);
        return undefined;
      });
    });
}

interface ControlOptions extends ClientOptions {
  reason?: string;
}

function cancel(cli: Cli): Command {
  return clientCommand("cancel", "ask an instance to end; its code may clean up")
    .argument("<id>", "instance id")
    .option("--reason <text>", "kept in its history")
    .action((id: string, options: ControlOptions) => control(cli, "cancel", id, options));
}

function terminate(cli: Cli): Command {
  return destructive(clientCommand("terminate", "end an instance at once; its code cleans nothing up"))
    .argument("<id>", "instance id")
    .option("--reason <text>", "kept in its history")
    .action(async (id: string, options: ControlOptions & Confirmed) => {
      if (await confirm(cli, options, `terminate ${id}: it ends at once and cleans nothing up`))
        await control(cli, "terminate", id, options);
    });
}

const control = (cli: Cli, verb: "cancel" | "terminate", id: string, options: ControlOptions) =>
  withClient(cli, options, async ({ client, config, names, out }) => {
    const { reason } = options;
    await client[verb](id, reason);
    const value = reason === undefined ? {} : { reason };
    out.detail(natsPub(config, { subject: names.verb(id, verb), value }));
    out.done(`${verb} sent to ${id}`);
    return undefined;
  });

/**
 * Prints the whole answer for programs, whatever the end; for people the output alone, or why there is none.
 */
async function printResult(
  { client, out }: CliConnection,
  id: string,
  { timeout = Number.POSITIVE_INFINITY }: WaitOptions,
  known: boolean,
): Promise<ExitCode> {
  const since = performance.now();
  const erase = out.progress(() => `waiting for ${id}, ${span(performance.now() - since)}`);
  let view: InstanceView | undefined;
  try {
    view = await client.waitForEnd(id, timeout, { known, untilParked: true });
  } finally {
    erase();
  }
  if (!view) throw new HoldfastError({ code: "instance_not_found", message: `there is no instance ${id}` });
  if (out.json) out.data(view, () => "");
  if (view.status === "parked") {
    // A parked instance continues by itself once the reason is gone; the command does not wait for that.
    const { message, code } = view.error ?? { message: "no reason was recorded", code: "parked" };
    out.note(`${id} is parked, it cannot go on: ${message} (${code})`);
    out.note(`  ${unparking(id, code)}`);
    return exitCodes.failed;
  }
  if (view.endedAt === undefined) {
    const message = `${id} has not ended in time (${view.status})`;
    throw new TimeoutError({ code: "result_timeout", message });
  }
  const { status, output, error } = view;
  if (status === "completed") {
    if (!out.json) out.data(output, () => JSON.stringify(output ?? null, null, 2));
    return exitCodes.ok;
  }
  out.note(`${id} ${status}${error ? `: ${error.message} (${error.code})` : ""}`);
  return exitCodes.failed;
}
