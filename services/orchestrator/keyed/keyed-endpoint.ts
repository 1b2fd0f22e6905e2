/**
 * Answers requests on `session.<type>.<key>` and `call.<type>.<key>.<call>`, from any NATS client and from the
 * SDK. Orchestrators answer because they have the application: wrong input is refused before a session is opened.
 */
import { KeyedRequest, type KeyedRoute, type KeyedSpec, sessionPhases } from "../../../schemas/index.ts";
import {
  type CoreMessage,
  decode,
  encode,
  headerNames,
  type MicroReply,
  type MicroService,
  type Payloads,
  parseJson,
  startMicroService,
} from "../../../shared/bus/index.ts";
import {
  type AnySession,
  type App,
  type KeyOptions,
  keyedSessionId,
  keyedSpec,
  validate,
} from "../../../shared/definitions/index.ts";
import { HoldfastError, isFault, TimeoutError } from "../../../shared/errors/index.ts";
import type { Generation } from "../../../shared/fleet/index.ts";
import { once, parseDuration, type Service } from "../../../shared/runtime/index.ts";
import { KeyedCalls } from "../../../shared/sdk/internal.ts";
import { checkCall, findSessionType } from "../find-session-call.ts";
import { KeyOpener, type KeyOpenerParts } from "./key-opener.ts";

interface KeyedEndpointParts extends KeyOpenerParts {
  readonly app: App;
  readonly payloads: Payloads;
  readonly generation: Pick<Generation, "allows" | "heldBackBy">;
  readonly version: string;
}

const defaultWaitMs = 30_000;
const maxWaitMs = 3_600_000;
/** Longest wait for one answer to `open`; a client that wants to wait longer asks again. */
const openWaitMs = 5_000;

export class KeyedEndpoint implements Service {
  readonly #parts: KeyedEndpointParts;
  readonly #opener: KeyOpener;
  readonly #calls: KeyedCalls;
  #service: MicroService | undefined;

  constructor(parts: KeyedEndpointParts) {
    this.#parts = parts;
    this.#opener = new KeyOpener(parts);
    this.#calls = new KeyedCalls({
      ...parts,
      // Asks in this process, not over the bus.
      askRoute: (target, request, waitMs) =>
        this.#open(target.type, target.key, request, Math.min(openWaitMs, waitMs)),
    });
  }

  async start(): Promise<void> {
    const { bus, names, runtime, version } = this.#parts;
    this.#service = await startMicroService(
      bus,
      {
        name: "holdfast-sessions",
        version,
        description: "Sessions that belong to a key: open, describe, close, call",
        endpoints: [
          {
            name: "session",
            subject: names.allKeyed,
            metadata: {
              description:
                'session.<type>.<key>, body: {"do":"open","config":…,"onLost":…,"ttl":…}, {"do":"close"}; empty: describes the session',
            },
            handler: (message) => answered(this.#session(message)),
          },
          {
            name: "call",
            subject: names.allKeyedCalls,
            metadata: {
              description:
                "call.<type>.<key>.<call>, body: input as JSON; headers Holdfast-Config: config as JSON, Holdfast-On-Lost, Holdfast-Ttl, Holdfast-Wait: how long to wait, 30s by default",
            },
            handler: (message) => answered(this.#call(message)),
          },
        ],
      },
      runtime,
    );
  }

  stop = once(async () => {
    await this.#service?.stop();
    await this.#calls.stop();
  });

  async #session(message: CoreMessage): Promise<object> {
    const [type = "", key = ""] = this.#parts.names.parseKeyed(message.subject);
    const request = requestOf(message);
    switch (request.do) {
      case "open":
        return this.#open(type, key, request, Math.min(openWaitMs, waitOf(message, openWaitMs)));
      case "close": {
        const record = await this.#record(type, key);
        if (sessionPhases[record.phase].over) return { closed: false };
        await this.#opener.close(record.sessionId, request.reason);
        return { closed: true };
      }
      case "describe":
        return { session: await this.#record(type, key) };
    }
  }

  async #record(type: string, key: string) {
    this.#definition(type);
    const sessionId = keyedSessionId(type, key);
    const entry = await this.#parts.sessions.get(sessionId, { leader: true });
    if (entry) return entry.value;
    throw new HoldfastError({
      code: "session_not_found",
      message: `no session "${type}" is open for key "${key}", and none was open lately`,
    });
  }

  async #open(
    type: string,
    key: string,
    request: Extract<KeyedRequest, { do: "open" }>,
    waitMs: number,
  ): Promise<KeyedRoute> {
    const definition = this.#definition(type);
    const spec = this.#spec(definition, key, request);
    if (request.call !== undefined) checkCall(definition, request.call, request.input);
    // A request without a config accepts the config that the session was opened with.
    const check = () =>
      void validate(definition.config, request.config, "invalid_config", `config of session "${type}"`);
    return this.#opener.open(spec, { not: request.not, waitMs, check });
  }

  async #call(message: CoreMessage): Promise<object> {
    const { names, runtime } = this.#parts;
    const [type = "", key = "", name = ""] = names.parseKeyed(message.subject);
    const input = jsonOf(message.body, "the input");
    const configText = header(message, headerNames.keyConfig);
    const request: Extract<KeyedRequest, { do: "open" }> = {
      do: "open",
      ...(configText !== undefined && {
        config: jsonOf(new TextEncoder().encode(configText), `header ${headerNames.keyConfig}`),
      }),
      ...optional("onLost", header(message, headerNames.keyOnLost) as KeyOptions["onLost"]),
      ...optional("ttl", header(message, headerNames.keyTtl)),
    };
    const definition = this.#definition(type);
    const { sessionId, configDigest } = this.#spec(definition, key, request);
    checkCall(definition, name, input);
    const waitMs = Math.min(waitOf(message, defaultWaitMs), maxWaitMs);
    const abort = new AbortController();
    const timer = runtime.clock.after(waitMs, () => abort.abort(tooLate(name, waitMs)));
    try {
      const { do: _, ...open } = request;
      const target = { type, key, sessionId, configDigest, open };
      const deadline = runtime.clock.monotonic() + waitMs;
      const output = await this.#calls.call(target, name, input, { deadline, signal: abort.signal });
      return { output };
    } finally {
      timer.cancel();
    }
  }

  #definition(type: string): AnySession {
    const { app, generation } = this.#parts;
    const definition = findSessionType(app, type);
    if (generation.allows(2)) return definition;
    const older = generation.heldBackBy().map(({ kind, id }) => `${kind} ${id}`);
    throw new HoldfastError({
      code: "needs_newer_fleet",
      message: `sessions by key need a newer version everywhere: ${older.join(", ") || "an older process"} is alive`,
      retryable: true,
    });
  }

  #spec(
    definition: AnySession,
    key: string,
    { config, onLost, ttl }: Pick<Extract<KeyedRequest, { do: "open" }>, "config" | "onLost" | "ttl">,
  ): KeyedSpec {
    return keyedSpec(definition, {
      key,
      ...optional("config", config),
      ...optional("onLost", onLost),
      ...optional("ttl", ttl === undefined ? undefined : parseDuration(ttl, "ttl")),
    });
  }
}

function requestOf({ body }: CoreMessage): KeyedRequest {
  if (body.length === 0) return { do: "describe" };
  const request = decode(KeyedRequest, body);
  if (request.kind === "ok") return request.value;
  throw new HoldfastError({ code: "invalid_request", message: `session: ${request.message}` });
}

function jsonOf(bytes: Uint8Array, what: string): unknown {
  if (bytes.length === 0) return undefined;
  const parsed = parseJson(bytes);
  if (parsed.kind === "ok") return parsed.value;
  throw new HoldfastError({ code: "invalid_json", message: `${what} is ${parsed.message}` });
}

function waitOf(message: CoreMessage, absent: number): number {
  const wait = header(message, headerNames.wait);
  return wait === undefined ? absent : parseDuration(wait, headerNames.wait);
}

/** Header names are matched as they come: some clients write them in lower case. */
function header(message: CoreMessage, name: string): string | undefined {
  const found = Object.entries(message.headers).find(([key]) => key.toLowerCase() === name.toLowerCase());
  return found?.[1] === "" ? undefined : found?.[1];
}

const optional = <K extends string, T>(name: K, value: T | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [P in K]?: T };

const tooLate = (name: string, waitMs: number): TimeoutError =>
  new TimeoutError({
    code: "timeout",
    message: `${name} did not answer within ${waitMs} ms and was cancelled; header Holdfast-Wait asks for longer`,
    retryable: true,
  });

async function answered(answer: Promise<object>): Promise<MicroReply> {
  try {
    return { body: encode({ ok: true, ...(await answer) }) };
  } catch (error) {
    if (!(error instanceof HoldfastError) && !isFault(error)) throw error;
    const hint = isFault(error) && error.hint !== undefined ? `. ${error.hint}` : "";
    const details = error.details === undefined ? {} : { details: error.details };
    return {
      body: encode({
        ok: false,
        error: { code: error.code, message: `${error.message}${hint}`, ...details },
      }),
      error: { code: error.code === "session_not_found" ? 404 : 400, description: error.code },
    };
  }
}
