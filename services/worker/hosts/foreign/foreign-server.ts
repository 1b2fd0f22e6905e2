/**
 * Takes the place of `HostServer` for a program in another language: passes the worker's requests on in the
 * published protocol, and returns the program's answers. The schemas are checked here, because the program
 * does not have them.
 *
 * X1 The host keeps the state; its messages are checked, and a message without a request is refused by name
 *    and harms nothing.
 */
import {
  type Failure,
  type FromHostMessage,
  hostProtocolVersion,
  type ToHostMessage,
} from "../../../../schemas/index.ts";
import { type AnySession, validate } from "../../../../shared/definitions/index.ts";
import { HoldfastError } from "../../../../shared/errors/index.ts";
import { CheckedCall, failureOf, unknownCode } from "../checked-call.ts";
import type { FromHost, HostRequest, Refusal, ToHost } from "../isolated/protocol.ts";
import { Answers, noBytes, type OpenRequest } from "./answers.ts";

interface ForeignServerInit {
  definition: AnySession;
  /** Throws if the message cannot be sent. */
  send(message: ToHostMessage): void;
  post(message: FromHost): void;
}

export class ForeignServer {
  readonly #definition: AnySession;
  readonly #send: ForeignServerInit["send"];
  readonly #post: ForeignServerInit["post"];
  readonly #answers = new Answers();

  constructor({ definition, send, post }: ForeignServerInit) {
    this.#definition = definition;
    this.#send = send;
    this.#post = post;
  }

  /** A message from the worker. */
  receive(message: ToHost): void {
    switch (message.kind) {
      case "request":
        return this.#ask(message.id, message.request);
      case "abort":
        if (this.#answers.cancel(message.id))
          this.#notify({ kind: "cancel", id: message.id, reason: message.reason });
        return;
      case "event":
        return this.#notify({
          kind: "event",
          key: message.key,
          name: message.name,
          payload: message.payload,
        });
      case "wrote":
        return this.#notify({ kind: "taken", chunk: message.write, error: message.error });
      case "blob-done":
        return this.#notify({ kind: "blob", ask: message.ask, value: message.value, error: message.error });
      case "ping":
        return this.#notify(message);
    }
  }

  /** A message from the host. */
  receiveFromHost(message: FromHostMessage): void {
    switch (message.kind) {
      case "ready":
        return this.#ready(message);
      case "done":
        return this.#done(message);
      case "failed":
        return this.#failed(message.id, message.error);
      case "chunk":
        return this.#chunk(message);
      case "heartbeat":
        return this.#post({ ...message, details: message.details });
      case "log": {
        const { level, message: text, fields } = message;
        if (message.id !== undefined && this.#answers.awaited(message.id)) {
          return this.#post({ kind: "log", id: message.id, level, message: text, fields });
        }
        return this.#post({ kind: "host-log", level, message: text, fields });
      }
      case "model": {
        const { bytes, ...model } = message.model;
        return this.#post({ ...message, model: bytes === undefined ? model : { ...model, bytes } });
      }
      case "metadata":
        return this.#post(message);
      case "blob": {
        const { key, ask, do: what, name, data } = message;
        return this.#post({ kind: "blob", key, ask, request: { do: what, name, data } });
      }
      case "give-up":
        return this.#post({ kind: "gave-up", key: message.key, reason: message.reason });
      case "pong":
        return this.#post({ kind: "pong", n: message.n, rssBytes: message.rssBytes });
      case "unable":
        return this.#post(message);
    }
  }

  /**
   * A message of the host was too long to be read, so its request fails. Returns false if the request is not
   * known.
   */
  tooLong(id: number | undefined, why: string): boolean {
    if (id === undefined || !this.#answers.awaited(id)) return false;
    this.#refuse("message_too_large", id);
    this.#failed(id, { code: "host_message_too_large", message: why, retryable: false });
    return true;
  }

  #ask(id: number, request: HostRequest): void {
    try {
      const { message, waiting } = this.#translate(id, request);
      this.#answers.wait(id, waiting);
      if (message) this.#send(message);
      else this.#done({ kind: "done", id, value: [] });
    } catch (error) {
      this.#answers.answered(id);
      this.#post({ kind: "failed", id, error: failureOf(error) });
    }
  }

  /** `message` is undefined if the host need not be asked. */
  #translate(id: number, request: HostRequest): { message: ToHostMessage | undefined; waiting: OpenRequest } {
    const { name: type, config: schema } = this.#definition;
    switch (request.kind) {
      case "init": {
        const { session, restore: state } = request;
        const config: unknown = validate(
          schema,
          request.config,
          "invalid_config",
          `config of session type ${type}`,
        );
        const message: ToHostMessage = state
          ? { kind: "restore", id, session, config, state }
          : { kind: "init", id, session, config };
        return { message, waiting: { kind: "other" } };
      }
      case "call":
        return this.#call(id, request);
      case "share":
        return { message: undefined, waiting: { kind: "other" } }; // a program manages its own threads
      case "activity":
        throw new HoldfastError({
          code: "activity_not_hosted",
          message: `activity ${request.name} cannot run on a session of type ${type}: its state is in a program of its own`,
        });
      case "checkpoint":
        return { message: { ...request, id }, waiting: { kind: "checkpoint", type } };
      case "adopt":
      case "snapshot":
      case "shutdown":
        return { message: { ...request, id }, waiting: { kind: "other" } };
    }
  }

  #call(
    id: number,
    { key, name, inputs, run }: Extract<HostRequest, { kind: "call" }>,
  ): { message: ToHostMessage | undefined; waiting: OpenRequest } {
    const { name: type, calls } = this.#definition;
    const call = Object.hasOwn(calls, name) ? calls[name] : undefined;
    if (!call) throw unknownCode("call", name, `session type ${type}`);
    const checked = new CheckedCall(call, `${type}.${name}`);
    if (!call.batch) {
      const input = checked.parse(inputs[0]);
      return { message: { kind: "call", id, key, name, input, run }, waiting: { kind: "call", checked } };
    }
    const batch = checked.parseAll(inputs);
    const waiting: OpenRequest = { kind: "batch", checked, batch };
    if (batch.good.length === 0) return { message: undefined, waiting };
    return { message: { kind: "batch", id, key, name, inputs: [...batch.good], run }, waiting };
  }

  #done(message: Extract<FromHostMessage, { kind: "done" }>): void {
    const { id } = message;
    const waiting = this.#answers.answered(id);
    if (waiting.kind === "unasked") return this.#refuse(waiting.why, id);
    if (waiting.cancelled && waiting.kind !== "other") {
      this.#refuse("reply_after_cancel", id);
      return this.#post({ kind: "failed", id, error: cancelled });
    }
    try {
      this.#post({ kind: "done", id, value: Answers.valueOf(waiting, message) });
    } catch (error) {
      this.#post({ kind: "failed", id, error: failureOf(error) });
    }
  }

  #failed(id: number, error: Failure): void {
    const waiting = this.#answers.answered(id);
    if (waiting.kind === "unasked") this.#refuse(waiting.why, id);
    else this.#post({ kind: "failed", id, error });
  }

  #chunk({ id, chunk, value, bytes }: Extract<FromHostMessage, { kind: "chunk" }>): void {
    const error = this.#answers.awaited(id)
      ? noBytes(value, bytes, "a chunk of a stream")
      : { code: "chunk_of_no_request", message: `request ${id} is over or was never made`, retryable: false };
    if (!error) return this.#post({ kind: "write", id, write: chunk, chunk: value });
    if (error.code === "chunk_of_no_request") this.#refuse("chunk_of_no_request", id);
    this.#notify({ kind: "taken", chunk, error });
  }

  /** HOST-1, for a host that speaks our version and has the calls that the type declares. */
  #ready({ protocol, calls }: Extract<FromHostMessage, { kind: "ready" }>): void {
    const { name } = this.#definition;
    if (protocol !== hostProtocolVersion) {
      return this.#unable(
        "host_protocol_mismatch",
        `the host of session type ${name} speaks version ${protocol} of the host protocol, and this worker speaks version ${hostProtocolVersion}`,
      );
    }
    const missing = calls && Object.keys(this.#definition.calls).filter((call) => !calls.includes(call));
    if (missing && missing.length > 0) {
      const has = calls.length === 0 ? "none" : calls.join(", ");
      return this.#unable(
        "host_call_missing",
        `the host of session type ${name} has no call ${missing.join(", ")}; it has ${has}`,
      );
    }
    this.#post({ kind: "ready" });
  }

  #unable(code: string, message: string): void {
    this.#post({ kind: "unable", error: { code, message, retryable: false } });
  }

  #refuse(why: Refusal, id: number): void {
    this.#post({ kind: "refused", why, id });
  }

  /** Sends a message that needs no answer. If it cannot be sent, no request has to be informed. */
  #notify(message: ToHostMessage): void {
    try {
      this.#send(message);
    } catch (error) {
      const { code, message: why } = failureOf(error);
      this.#post({
        kind: "host-log",
        level: "warn",
        message: `${message.kind} was not sent: ${why}`,
        fields: { code },
      });
    }
  }
}

const cancelled: Failure = { code: "cancelled", message: "cancelled", retryable: false };
