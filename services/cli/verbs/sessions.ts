/** sessions list | describe | explain | evict | drain */
import { Command } from "commander";
import type { SessionRecord } from "../../../schemas/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { sessionTable, shownSession } from "../render/sessions.ts";
import { type Confirmed, confirm, destructive } from "../terminal/confirm.ts";
import { choice, phases, wholeNumber } from "../terminal/options.ts";

export const sessionCommands = (cli: Cli): Command =>
  new Command("sessions")
    .description("sessions: who holds them, why they wait, take them away")
    .addCommand(list(cli))
    .addCommand(describe(cli))
    .addCommand(explain(cli))
    .addCommand(
      giveUp(cli, "evict", {
        what: "take a session from its holder at once; its instance hears that it was lost",
        question: "it is taken from its holder at once, with what runs on it",
        done: "evict sent to the holder of",
      }),
    )
    .addCommand(
      giveUp(cli, "drain", {
        what: "let the holder finish what runs, save the state if the type can, and give the session up",
        question: "its holder gives it up when what runs is done",
        done: "drain sent to the holder of",
      }),
    );

type ListOptions = ClientOptions & {
  type?: string;
  instance?: string;
  phase?: SessionRecord["phase"] | "idle";
  limit: number;
};

function list(cli: Cli): Command {
  return clientCommand("list", "list sessions, latest first")
    .option("--type <type>", "only this type")
    .option("--instance <id>", "only of this instance")
    .addOption(choice("--phase <phase>", "only this phase; parked is the same as idle", [...phases, "idle"]))
    .option("--limit <n>", "at most so many", wholeNumber, 50)
    .action((options: ListOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const { type, instance: instanceId, limit } = options;
        const phase = options.phase === "idle" ? "parked" : options.phase;
        const records = await client.sessions.list({ type, instanceId, phase, limit });
        out.list(records, () => (records.length === 0 ? "no sessions" : sessionTable(records, out.paint)));
        return undefined;
      }),
    );
}

function describe(cli: Cli): Command {
  return clientCommand("describe", "show one session")
    .argument("<id>", "session id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const description = await client.sessions.describe(id);
        out.data(description, () => shownSession(description, out.paint));
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

function giveUp(
  cli: Cli,
  verb: "evict" | "drain",
  words: { what: string; question: string; done: string },
): Command {
  return destructive(clientCommand(verb, words.what))
    .argument("<id>", "session id")
    .option("--reason <text>", "kept in the instance's history")
    .action(async (id: string, options: ClientOptions & Confirmed & { reason?: string }) => {
      if (!(await confirm(cli, options, `${verb} ${id}: ${words.question}`))) return;
      await withClient(cli, options, async ({ client, out }) => {
        await client.sessions[verb](id, options.reason);
        out.done(`${words.done} ${id}`);
        return undefined;
      });
    });
}
