/** sessions list | describe | explain | blobs | blob | call | close | evict | drain */
import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import type { KeyedOnLost, SessionRecord } from "../../../schemas/index.ts";
import { HoldfastError } from "../../../shared/errors/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { natsRequest } from "../connection/nats-line.ts";
import { blobTable, sessionTable, shownSession } from "../render/sessions.ts";
import { type Confirmed, confirm, destructive } from "../terminal/confirm.ts";
import { choice, duration, keyPolicies, phases, wholeNumber } from "../terminal/options.ts";
import { readInput } from "../terminal/read-input.ts";

export const sessionCommands = (cli: Cli): Command =>
  new Command("sessions")
    .description("sessions: show holders and reasons for waiting, call them, take them away")
    .addCommand(list(cli))
    .addCommand(describe(cli))
    .addCommand(explain(cli))
    .addCommand(blobs(cli))
    .addCommand(blob(cli))
    .addCommand(callKey(cli))
    .addCommand(closeKey(cli))
    .addCommand(
      giveUp(cli, "evict", {
        what: "take a session from its holder at once; its instance gets the loss",
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
  key?: string;
  metadata?: Record<string, string>;
  phase?: SessionRecord["phase"] | "idle";
  limit: number;
};

function metadata(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be name=value.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

function list(cli: Cli): Command {
  return clientCommand("list", "list sessions, latest first")
    .option("--type <type>", "only this type")
    .option("--instance <id>", "only of this instance")
    .option("--key <key>", "only of this key")
    .option("--metadata <name=value...>", "only with this metadata", metadata)
    .addOption(choice("--phase <phase>", "only this phase; parked is the same as idle", [...phases, "idle"]))
    .option("--limit <n>", "at most so many", wholeNumber, 50)
    .action((options: ListOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const { type, instance: instanceId, limit, key, metadata } = options;
        const phase = options.phase === "idle" ? "parked" : options.phase;
        const records = await client.sessions.list({ type, instanceId, phase, limit, key, metadata });
        out.list(records, () => (records.length === 0 ? "no sessions" : sessionTable(records, out.paint)));
        return undefined;
      }),
    );
}

function describe(cli: Cli): Command {
  return clientCommand("describe", "show one session")
    .argument("<id>", "session id, or its type where a key follows")
    .argument("[key]", "of a session that belongs to a key")
    .action((id: string, key: string | undefined, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const description = await (key === undefined
          ? client.session(id)
          : client.session(id, { key })
        ).describe();
        out.data(description, () => shownSession(description, out.paint));
        return undefined;
      }),
    );
}

function blobs(cli: Cli): Command {
  return clientCommand("blobs", "list what code inside a session stored under names, the oldest first")
    .argument("<id>", "session id")
    .action((id: string, options: ClientOptions) =>
      withClient(cli, options, async ({ client, out }) => {
        const found = await client.sessions.blobs(id);
        out.list(found, () => (found.length === 0 ? "no blobs" : blobTable(found, out.paint)));
        return undefined;
      }),
    );
}

function blob(cli: Cli): Command {
  return clientCommand("blob", "save what code inside a session stored under a name")
    .argument("<id>", "session id")
    .argument("<name>", "name of the blob")
    .requiredOption("--out <file>", "the file to write it to")
    .action((id: string, name: string, options: ClientOptions & { out: string }) =>
      withClient(cli, options, async ({ client, out }) => {
        const bytes = await client.sessions.blob(id, name);
        if (!bytes)
          throw new HoldfastError({
            code: "blob_not_found",
            message: `session ${id} has no blob ${name}; holdfast sessions blobs ${id} lists those it has`,
          });
        writeFileSync(options.out, bytes);
        out.done(`${bytes.byteLength} bytes written to ${options.out}`);
        return undefined;
      }),
    );
}

interface CallOptions extends ClientOptions {
  config?: string;
  onLost?: KeyedOnLost;
  ttl?: number;
  timeout: number;
  stream?: boolean;
}

function callKey(cli: Cli): Command {
  return clientCommand(
    "call",
    "call the session of a key, which is opened if it is not open, and print the result",
  )
    .argument("<type>", "session type")
    .argument("<key>", "its key")
    .argument("<call>", "name of the call")
    .argument("[input]", "input as JSON, @file, or - for stdin")
    .option("--config <json>", "config as JSON or @file, if the call opens the key")
    .addOption(choice("--on-lost <policy>", "what a loss leads to, if the call opens the key", keyPolicies))
    .option("--ttl <duration>", "if the call opens the key: closed after so long without a call", duration)
    .option("--timeout <duration>", "at most so long, then the call is cancelled", duration, 30_000)
    .option("--stream", "print what the call writes, a line each, before the result")
    .action(
      async (type: string, key: string, name: string, input: string | undefined, options: CallOptions) => {
        const value = readInput(input, "the input");
        const config = readInput(options.config, "the config");
        const { onLost, ttl, timeout } = options;
        await withClient(cli, options, async ({ client, config: where, names, out }) => {
          const session = client.session(type, {
            key,
            ...(config !== undefined && { config }),
            ...(onLost !== undefined && { onLost }),
            ...(ttl !== undefined && { ttl }),
          });
          out.detail(natsRequest(where, { subject: names.keyedCall(type, key, name), value }));
          const calling = options.stream ? session.stream(name, value, { timeout }) : undefined;
          for await (const chunk of calling ?? []) out.data({ chunk }, () => JSON.stringify(chunk));
          const output = await (calling ? calling.result : session.call(name, value, { timeout }));
          out.data(output, () => JSON.stringify(output ?? null, null, 2));
          return undefined;
        });
      },
    );
}

function closeKey(cli: Cli): Command {
  return destructive(clientCommand("close", "close the session of a key for everybody"))
    .argument("<type>", "session type")
    .argument("<key>", "its key")
    .option("--reason <text>", "why")
    .action(async (type: string, key: string, options: ClientOptions & Confirmed & { reason?: string }) => {
      if (!(await confirm(cli, options, `close ${type} ${key}: its state goes, for everybody`))) return;
      await withClient(cli, options, async ({ client, out }) => {
        const { closed } = await client.sessions.closeKey(type, key, options.reason);
        out.done(closed ? `close sent to the keeper of ${type} ${key}` : `${type} ${key} was closed already`);
        return undefined;
      });
    });
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
