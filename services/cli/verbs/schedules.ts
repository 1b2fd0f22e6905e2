/** schedule create | list | show | pause | resume | trigger | backfill | delete */

import { Command, InvalidArgumentError } from "commander";
import { parseInstant } from "../../../shared/runtime/index.ts";
import type { Overlap, ScheduleSpec } from "../../../shared/sdk/index.ts";
import { count } from "../../../shared/wording/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { scheduleTable, shownSchedule } from "../render/schedules.ts";
import { type Confirmed, confirm, destructive } from "../terminal/confirm.ts";
import { choice, overlaps, wholeNumber } from "../terminal/options.ts";
import { readInput } from "../terminal/read-input.ts";

export const scheduleCommands = (cli: Cli): Command =>
  new Command("schedule")
    .description("schedules: orchestrations started by the clock")
    .addCommand(create(cli))
    .addCommand(list(cli))
    .addCommand(show(cli))
    .addCommand(pause(cli))
    .addCommand(resume(cli))
    .addCommand(trigger(cli))
    .addCommand(backfill(cli))
    .addCommand(remove(cli));

interface CreateOptions extends ClientOptions {
  cron?: string[];
  timeZone?: string;
  every?: string;
  offset?: string;
  at?: string[];
  startAt?: string;
  endAt?: string;
  limit?: number;
  jitter?: string;
  overlap?: Overlap;
  catchUp?: string;
  input?: string;
  replace?: boolean;
  paused?: boolean;
  note?: string;
}

function create(cli: Cli): Command {
  return clientCommand("create", "create a schedule, or change it")
    .argument("<id>", "schedule id")
    .argument("<orchestration>", "what it starts")
    .option("--input <json>", "input of every run as JSON, @file, or - for stdin")
    .option("--cron <line...>", "minute hour day month weekday, with seconds in front if you like")
    .option("--time-zone <name>", "for --cron, like Europe/Berlin; UTC where absent")
    .option("--every <duration>", "every so long, like 15m")
    .option("--offset <duration>", "with --every: so much behind the full interval")
    .option("--at <time...>", "once or a few times, like 2027-01-31T09:00:00Z")
    .option("--start-at <time>", "nothing before this")
    .option("--end-at <time>", "nothing after this")
    .option("--limit <n>", "so many runs, then it is over", wholeNumber)
    .option("--jitter <duration>", "put each time off by up to so much")
    .addOption(overlap("what to do while the run before goes on (skip)"))
    .option("--catch-up <duration>", "make up for what was missed for no longer than this (1h)")
    .option("--replace", "change the schedule of that id where there is one")
    .option("--paused", "begin paused")
    .option("--note <text>", "with --paused: why")
    .action(async (id: string, orchestration: string, options: CreateOptions) => {
      const spec = specOf(orchestration, options, readInput(options.input, "--input"));
      await withClient(cli, options, async (connection) => {
        const { client, out } = connection;
        const { replace, paused, note } = options;
        await client.schedules.create(id, spec, { replace, paused, note });
        const { findServing } = await import("./served.ts");
        const served = await findServing(connection, orchestration);
        if (served.kind === "unknown")
          out.note(
            `no orchestrator serves ${orchestration}: its runs fail until one does. There ${served.names.length === 1 ? "is" : "are"}: ${served.names.join(", ") || "none"}`,
          );
        out.done(`schedule ${id} ${replace ? "is set" : "created"}`);
        return undefined;
      });
    });
}

/** The client checks the whole spec and reports what is wrong with it. */
function specOf(orchestration: string, options: CreateOptions, input: unknown): ScheduleSpec {
  const { cron, timeZone, every, offset, at, startAt, endAt, limit, jitter, overlap, catchUp } = options;
  const given = { cron, timeZone, every, offset, at, startAt, endAt, limit, jitter, overlap, catchUp, input };
  const known = Object.entries(given).filter(([, value]) => value !== undefined);
  return { orchestration: orchestration as ScheduleSpec["orchestration"], ...Object.fromEntries(known) };
}

function list(cli: Cli): Command {
  return clientCommand("list", "list schedules with their next time")
    .option("--all", "also those that are over")
    .action((options: ClientOptions & { all?: boolean }) =>
      withClient(cli, options, async ({ client, out }) => {
        const schedules = await client.schedules.list({ all: options.all });
        out.list(schedules, () =>
          schedules.length === 0 ? "no schedules" : scheduleTable(schedules, out.paint),
        );
        return undefined;
      }),
    );
}

function show(cli: Cli): Command {
  return clientCommand("show", "show one schedule, its next ten times and its latest runs")
    .argument("<id>", "schedule id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const schedule = await client.schedules.describe(id);
        out.data(schedule, () => shownSchedule(schedule, out.paint));
        return undefined;
      }),
    );
}

function pause(cli: Cli): Command {
  return clientCommand("pause", "start nothing until it is resumed")
    .argument("<id>", "schedule id")
    .option("--note <text>", "why; shown with the schedule")
    .action((id: string, options: ClientOptions & { note?: string }) =>
      withClient(cli, options, async ({ client, out }) => {
        await client.schedules.pause(id, options.note);
        out.done(`schedule ${id} is paused`);
        return undefined;
      }),
    );
}

function resume(cli: Cli): Command {
  return clientCommand("resume", "go on; what came while it was paused is left out")
    .argument("<id>", "schedule id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        await client.schedules.resume(id);
        out.done(`schedule ${id} goes on`);
        return undefined;
      }),
    );
}

function trigger(cli: Cli): Command {
  return clientCommand("trigger", "run it now, beside its times")
    .argument("<id>", "schedule id")
    .addOption(overlap("for this run alone"))
    .action((id: string, options: ClientOptions & { overlap?: Overlap }) =>
      withClient(cli, options, async ({ client, out }) => {
        const run = await client.schedules.trigger(id, { overlap: options.overlap });
        out.data(run, () => run.instanceId);
        return undefined;
      }),
    );
}

function backfill(cli: Cli): Command {
  return clientCommand("backfill", "run the times between two instants that were not run")
    .argument("<id>", "schedule id")
    .requiredOption("--from <time>", "like 2026-11-01T00:00:00Z", instant)
    .requiredOption("--to <time>", "like 2026-11-02T00:00:00Z", instant)
    .addOption(overlap("for these runs alone"))
    .action((id: string, options: ClientOptions & { from: number; to: number; overlap?: Overlap }) =>
      withClient(cli, options, async ({ client, out }) => {
        const { from, to } = options;
        const { times } = await client.schedules.backfill(id, { from, to, overlap: options.overlap });
        out.done(`${count(times.length, "time")} of schedule ${id} to be run`);
        return undefined;
      }),
    );
}

function remove(cli: Cli): Command {
  return destructive(clientCommand("delete", "start nothing more, ever; what runs goes on"))
    .argument("<id>", "schedule id")
    .action(async (id: string, options: ClientOptions & Confirmed) => {
      if (!(await confirm(cli, options, `delete schedule ${id}: it starts nothing more`))) return;
      await withClient(cli, options, async ({ client, out }) => {
        await client.schedules.delete(id);
        out.done(`schedule ${id} deleted`);
        return undefined;
      });
    });
}

const overlap = (description: string) => choice("--overlap <policy>", description, overlaps);

const instant = (text: string): number => {
  const at = parseInstant(text);
  if (at !== undefined) return at;
  throw new InvalidArgumentError("It must be a time like 2026-11-01T00:00:00Z.");
};
