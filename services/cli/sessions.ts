/** sessions list | describe | explain | evict */
import { Command } from "commander";
import { SessionRecord } from "../../schemas/index.ts";
import { Fault } from "../../shared/errors/index.ts";
import type { SessionDescription } from "../../shared/sdk/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "./client-command.ts";
import { brief, pairs, span, table, time } from "./output.ts";

const phases = SessionRecord.shape.phase;

export function sessionCommands(cli: Cli): Command {
  return new Command("sessions")
    .description("sessions: who holds them, why they wait, take them away")
    .addCommand(list(cli))
    .addCommand(describe(cli))
    .addCommand(explain(cli))
    .addCommand(evict(cli));
}

function list(cli: Cli): Command {
  return clientCommand("list", "list sessions, latest first")
    .option("--type <type>", "only this type")
    .option("--instance <id>", "only of this instance")
    .option("--phase <phase>", `only this phase: ${phases.options.join(", ")}`)
    .action((options: ClientOptions & { type?: string; instance?: string; phase?: string }) => {
      const phase = options.phase === undefined ? undefined : phaseOf(options.phase);
      return withClient(cli, options, async ({ client, out }) => {
        const records = await client.sessions.list({
          type: options.type,
          instanceId: options.instance,
          phase,
        });
        out.data(records, () => (records.length === 0 ? "no sessions" : sessionTable(records)));
        return undefined;
      });
    });
}

function describe(cli: Cli): Command {
  return clientCommand("describe", "show one session")
    .argument("<id>", "session id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const description = await client.sessions.describe(id);
        out.data(description, () => shown(description));
        return undefined;
      }),
    );
}

function explain(cli: Cli): Command {
  return clientCommand("explain", "say why a session waits, where it is, or why it was lost")
    .argument("<id>", "session id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const { record, explanation } = await client.sessions.describe(id);
        out.data({ sessionId: id, phase: record.phase, explanation }, () => explanation.join("\n"));
        return undefined;
      }),
    );
}

function evict(cli: Cli): Command {
  return clientCommand("evict", "take a session from its holder; its instance is told that it was lost")
    .argument("<id>", "session id")
    .option("--reason <text>", "kept in the instance's history")
    .action((id: string, options: ClientOptions & { reason?: string }) =>
      withClient(cli, options, async ({ client, out }) => {
        await client.sessions.evict(id, options.reason);
        out.done(`evict sent to the holder of ${id}`);
        return undefined;
      }),
    );
}

const sessionTable = (records: readonly SessionRecord[]): string =>
  table(records, [
    { title: "ID", value: (record) => record.sessionId },
    { title: "TYPE", value: (record) => record.type },
    { title: "PHASE", value: (record) => record.phase },
    { title: "WORKER", value: (record) => record.workerId },
    { title: "EPOCH", value: (record) => record.epoch, align: "right" },
    { title: "INIT", value: (record) => span(record.initMs), align: "right" },
    { title: "OPENED", value: (record) => time(record.openedAt) },
    { title: "INSTANCE", value: (record) => record.instanceId },
  ]);

function shown({ record, live, explanation }: SessionDescription): string {
  const facts = pairs([
    ["id", record.sessionId],
    ["type", record.type],
    ["phase", record.phase],
    ["instance", record.instanceId],
    ["worker", record.workerId],
    ["host", record.host],
    ["resource", record.resourceId],
    ["epoch", record.epoch],
    ["attachment", record.attachment],
    ["opened", time(record.openedAt)],
    ["claimed", time(record.claimedAt)],
    ["init took", span(record.initMs)],
    ["tags", record.requires.tags.join(", ")],
    ["resources", Object.keys(record.requires.resources).length > 0 ? brief(record.requires.resources) : ""],
    ["metadata", Object.keys(record.metadata).length > 0 ? brief(record.metadata) : ""],
    ["calls", live && `${live.calls} done, ${live.running} running, ${live.queued} waiting`],
    ["snapshot", brief(live?.snapshot, 1000)],
    ["error", record.error && `${record.error.message} (${record.error.code})`],
  ]);
  const owners = record.owners.map(
    ({ workerId, epoch, from, to, end }) =>
      `  epoch ${epoch}  ${workerId}  ${time(from)} – ${time(to) ?? "now"}${end === undefined ? "" : `  ${end}`}`,
  );
  return [facts, "", ...explanation, ...(owners.length > 0 ? ["", "holders", ...owners] : [])].join("\n");
}

function phaseOf(text: string): SessionRecord["phase"] {
  const parsed = phases.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new Fault("config", {
    code: "invalid_option",
    message: `--phase ${text}: must be one of ${phases.options.join(", ")}`,
  });
}
