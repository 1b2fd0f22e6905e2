/** Prints the equivalent `nats` command: every operation uses subjects that any NATS client may use. */
import { maskUrl } from "../../../shared/runtime/index.ts";
import type { EngineConfig } from "../../config.ts";

interface NatsMessage {
  subject: string;
  /** Undefined: an empty body. */
  value: unknown;
  msgId?: string;
}

/** A longer value would go through the object store, which takes more than one line. */
const longestValue = 8 * 1024;

export const natsPub = (config: Pick<EngineConfig, "nats">, message: NatsMessage): string =>
  natsLine(config, "pub --jetstream", message);

export const natsRequest = (config: Pick<EngineConfig, "nats">, message: NatsMessage): string =>
  natsLine(config, "req", message);

function natsLine(
  { nats }: Pick<EngineConfig, "nats">,
  verb: "pub --jetstream" | "req",
  { subject, value, msgId }: NatsMessage,
): string {
  const body = value === undefined ? "" : JSON.stringify(value);
  const login = nats.credsFile === undefined ? "" : ` --creds ${quoted(nats.credsFile)}`;
  const id = msgId === undefined ? "" : ` -H ${quoted(`Nats-Msg-Id:${msgId}`)}`;
  const shown = body.length > longestValue ? "'<the value, as JSON>'" : quoted(body);
  return `nats --server ${quoted(maskUrl(nats.url ?? ""))}${login} ${verb} ${subject} ${shown}${id}`;
}

/** Quotes the text as one word for the shell. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
