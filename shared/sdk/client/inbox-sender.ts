/** Publishes a client's messages to the inboxes of instances. */
import { messageIdHeader, type Payload } from "../../../schemas/index.ts";
import {
  encode,
  type Headers,
  headerNames,
  inInbox,
  installedNames,
  madeSignalId,
  publishOrThrow,
} from "../../bus/index.ts";
import { token } from "../../runtime/index.ts";
import { activeTraceparent } from "../../runtime/trace.ts";
import type { ClientParts } from "./client-options.ts";

interface SendOptions {
  headers?: Headers | undefined;
  /** Sent later, by a durable schedule of the instance. */
  delayed?: { at: number; id: string } | undefined;
  /** The receiving instance, if other clients can guess the message id. */
  guessableFor?: string | undefined;
}

export class InboxSender {
  readonly #parts: ClientParts;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  /** A big value goes to the object store, where it belongs to the instance `owner`. */
  async wrap(value: unknown, owner: string): Promise<Payload | undefined> {
    return value === undefined ? undefined : this.#parts.payloads.wrap(value, owner);
  }

  /**
   * The body is the value itself; without a value the body is empty. A big value is in the object store and a
   * header refers to it.
   */
  async send(
    subject: string,
    msgId: string,
    payload: Payload | undefined,
    { headers, delayed, guessableFor }: SendOptions = {},
  ): Promise<{ seq: number; duplicate: boolean }> {
    const { bus, names, runtime } = this.#parts;
    // A delayed message needs no look-up: only the engine writes to the stream of schedules.
    const original =
      delayed || guessableFor === undefined
        ? undefined
        : { ...inInbox(names, guessableFor), random: runtime.random };
    const way = delayed ? await this.#delayed(subject, delayed) : { subject };
    if (payload && "json" in payload)
      return publishOrThrow(bus, { ...way, msgId, body: encode(payload.json), headers }, original);
    const blob = payload && { [headerNames.blob]: JSON.stringify(payload.blob) };
    return publishOrThrow(
      bus,
      { ...way, msgId, body: new Uint8Array(), headers: blob ? { ...headers, ...blob } : headers },
      original,
    );
  }

  /**
   * With a `messageId` of the caller, the signal may be sent again: the instance receives it once. Returns its
   * place in the inbox.
   */
  async signal(
    instanceId: string,
    name: string,
    payload: unknown,
    messageId: string | undefined,
  ): Promise<{ seq: number }> {
    const { names, runtime } = this.#parts;
    // The server compares message ids across all subjects of the stream, so the instance id is part of the
    // message id.
    const msgId = `${madeSignalId(instanceId)}${messageId ?? token(runtime.random)}`;
    const value = await this.wrap(payload, instanceId);
    const own =
      messageId === undefined ? {} : { headers: { [messageIdHeader]: messageId }, guessableFor: instanceId };
    return this.send(names.signal(instanceId, name), msgId, value, own);
  }

  async control(instanceId: string, verb: "cancel" | "terminate", reason: string | undefined): Promise<void> {
    const { bus, names, runtime } = this.#parts;
    await publishOrThrow(bus, {
      subject: names.verb(instanceId, verb),
      body: encode(reason === undefined ? {} : { reason }),
      msgId: `${verb}-${instanceId}-${token(runtime.random)}`,
    });
  }

  async #delayed(subject: string, { at, id }: { at: number; id: string }) {
    // A client that may not look at streams belongs to an installation with roles, which is a new one.
    const names = await installedNames(this.#parts.bus, this.#parts.names).catch(() => this.#parts.names);
    const schedule = { at, target: names.fired(subject), keptMs: names.firedKeptMs };
    return { subject: names.delayedStart(id), schedule };
  }
}

/** The instance continues the caller's trace, if the caller has one. */
export function traceHeaders(): Headers | undefined {
  const traceparent = activeTraceparent();
  return traceparent === undefined ? undefined : { traceparent };
}
