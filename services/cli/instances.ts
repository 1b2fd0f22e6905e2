/** start, get, list, history, result, signal, cancel, terminate */
import type { Command } from "commander";
import { InstanceStatus, terminalStatuses } from "../../schemas/index.ts";
import { Fault, HoldfastError, TimeoutError } from "../../shared/errors/index.ts";
import { type Duration, parseDuration } from "../../shared/runtime/index.ts";
import { type Cli, type ClientOptions, clientCommand, type Session, withClient } from "./client-command.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { historyTable, instanceTable, shownInstance } from "./instance-text.ts";
import { readInput } from "./read-input.ts";

interface WaitOptions extends ClientOptions {
  timeout?: string;
}

export function instanceCommands(cli: Cli): Command[] {
  return [
    start(cli),
    get(cli),
    list(cli),
    history(cli),
    result(cli),
    stream(cli),
    signal(cli),
    control(cli, "cancel"),
    control(cli, "terminate"),
  ];
}

function start(cli: Cli): Command {
  return clientCommand("start", "start an orchestration")
    .argument("<name>", "name of the orchestration")
    .option("--input <json>", "input as JSON, @file, or - for stdin")
    .option("--id <id>", "instance id; the same id again changes nothing")
    .option("--wait", "wait for the end and print the output")
    .option("--timeout <duration>", "with --wait: at most so long, like 30s")
    .action(async (name: string, options: WaitOptions & { input?: string; id?: string; wait?: boolean }) => {
      const input = readInput(options.input, "--input");
      await withClient(cli, options, async (session) => {
        const { instanceId } = await session.client.start(name, input, { id: options.id });
        if (options.wait) return printResult(session, instanceId, options, true);
        session.out.data({ instanceId }, () => instanceId);
        return undefined;
      });
    });
}

function get(cli: Cli): Command {
  return clientCommand("get", "show one instance")
    .argument("<id>", "instance id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const view = await client.status(id);
        out.data(view, () => shownInstance(view));
        return undefined;
      }),
    );
}

function list(cli: Cli): Command {
  return clientCommand("list", "list instances, newest first")
    .option("--status <status...>", `only these: ${InstanceStatus.options.join(", ")}`)
    .option("--name <name>", "only this orchestration")
    .option("--id-prefix <text>", "only ids that begin so")
    .option("--limit <n>", "at most so many", "50")
    .action(
      (options: ClientOptions & { status?: string[]; name?: string; idPrefix?: string; limit: string }) => {
        const limit = wholeNumber(options.limit, "--limit");
        const status = options.status?.map(statusOf);
        return withClient(cli, options, async ({ client, out }) => {
          const views = await client.list({ status, name: options.name, prefix: options.idPrefix, limit });
          out.data(views, () => (views.length === 0 ? "no instances" : instanceTable(views)));
          return undefined;
        });
      },
    );
}

function history(cli: Cli): Command {
  return clientCommand("history", "show the events of an instance")
    .argument("<id>", "instance id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const entries = await client.history(id);
        out.data(entries, () => historyTable(entries));
        return undefined;
      }),
    );
}

function result(cli: Cli): Command {
  return clientCommand("result", "wait for the end of an instance and print its output")
    .argument("<id>", "instance id")
    .option("--timeout <duration>", "at most so long, like 30s")
    .action((id: string, options: WaitOptions) =>
      withClient(cli, options, (session) => printResult(session, id, options, false)),
    );
}

function stream(cli: Cli): Command {
  return clientCommand("stream", "print what the work of an instance writes, live until it ends")
    .argument("<id>", "instance id")
    .option("--after <offset>", "only what comes behind this offset")
    .option("--no-follow", "only what is there now")
    .action((id: string, options: ClientOptions & { after?: string; follow: boolean }) => {
      const after = options.after === undefined ? 0 : wholeNumber(options.after, "--after");
      return withClient(cli, options, async ({ client, out }) => {
        await client.status(id);
        for await (const item of client.stream(id, { after, follow: options.follow })) {
          out.data(item, () => (typeof item.chunk === "string" ? item.chunk : JSON.stringify(item.chunk)));
        }
        return undefined;
      });
    });
}

function signal(cli: Cli): Command {
  return clientCommand("signal", "send a signal to an instance, also before it was started")
    .argument("<id>", "instance id")
    .argument("<name>", "name of the signal")
    .argument("[payload]", "payload as JSON, @file, or - for stdin")
    .action(async (id: string, name: string, payload: string | undefined, options: ClientOptions) => {
      const value = readInput(payload, "the payload");
      await withClient(cli, options, async ({ client, out }) => {
        await client.signal(id, name, value);
        out.done(`signal ${name} sent to ${id}`);
        return undefined;
      });
    });
}

function control(cli: Cli, verb: "cancel" | "terminate"): Command {
  const what =
    verb === "cancel" ? "ask an instance to end; its code may clean up" : "end an instance at once";
  return clientCommand(verb, what)
    .argument("<id>", "instance id")
    .option("--reason <text>", "kept in its history")
    .action((id: string, options: ClientOptions & { reason?: string }) =>
      withClient(cli, options, async ({ client, out }) => {
        await client[verb](id, options.reason);
        out.done(`${verb} sent to ${id}`);
        return undefined;
      }),
    );
}

/** For programs the whole answer, whatever the end was; for people the output alone, or why there is none. */
async function printResult(
  { client, out }: Session,
  id: string,
  options: WaitOptions,
  known: boolean,
): Promise<ExitCode> {
  const timeoutMs =
    options.timeout === undefined
      ? Number.POSITIVE_INFINITY
      : parseDuration(options.timeout as Duration, "--timeout");
  const view = await client.waitForEnd(id, timeoutMs, undefined, known);
  if (!view) throw new HoldfastError({ code: "instance_not_found", message: `there is no instance ${id}` });
  if (!terminalStatuses.includes(view.status)) {
    if (out.json) out.data(view, () => "");
    throw new TimeoutError({
      code: "result_timeout",
      message: `${id} has not ended in time (${view.status})`,
    });
  }
  if (out.json) out.data(view, () => "");
  else if (view.status === "completed")
    out.data(view.output, () => JSON.stringify(view.output ?? null, null, 2));
  else out.note(`${id} ${view.status}${view.error ? `: ${view.error.message} (${view.error.code})` : ""}`);
  return view.status === "completed" ? exitCodes.ok : exitCodes.failed;
}

function statusOf(text: string): InstanceStatus {
  const parsed = InstanceStatus.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new Fault("config", {
    code: "invalid_option",
    message: `--status ${text}: must be one of ${InstanceStatus.options.join(", ")}`,
  });
}

function wholeNumber(text: string, option: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new Fault("config", {
    code: "invalid_option",
    message: `${option} ${text}: must be a whole number above 0`,
  });
}
