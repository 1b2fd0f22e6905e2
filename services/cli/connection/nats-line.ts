/** The same with the nats command line: everything goes over subjects any client may use. */
import { maskUrl } from "../../../shared/runtime/server-address.ts";
import type { EngineConfig } from "../../config.ts";

export interface NatsMessage {
  subject: string;
  /** Undefined: no body. */
  value: unknown;
  msgId?: string;
}

/** What does not fit into a message goes by way of the object store, which is more than one line. */
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

/** One word for the shell, whatever is in it. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
