/**
 * Request and reply endpoints for any NATS client: `start.<name>`, `status.<id>`, `result.<id>`,
 * `schedule.<id>`. Listed by `nats micro ls`. Every request gets a JSON reply, `{"ok":true,…}` or
 * `{"ok":false,"error":{"code","message"}}`.
 */
import { BlobRef, type Failure, type FlowOptions, updateIdHeader } from "../../schemas/index.ts";
import {
  type Bus,
  type CoreMessage,
  decode,
  encode,
  headerNames,
  type MicroReply,
  type MicroService,
  parseJson,
  type Subjects,
  startMicroService,
} from "../bus/index.ts";
import { HoldfastError, isFault } from "../errors/index.ts";
import { parseDuration, type Runtime } from "../runtime/index.ts";
import type { Client, InstanceView, ViewOptions } from "../sdk/index.ts";
import { parseFlow } from "../sdk/internal.ts";
import { answerSchedule } from "./schedule-endpoint.ts";

interface EndpointsOptions {
  names: Subjects;
  runtime: Runtime;
  version: string;
  /** Orchestrations that live orchestrators serve. Undefined: unknown, and any name is accepted. */
  orchestrations: () => readonly string[] | undefined | Promise<readonly string[] | undefined>;
}

/** Room for the other fields of a reply beside the value. */
const headroomBytes = 64 * 1024;
const defaultWaitMs = 30_000;
/** A client that wants to wait longer asks again. */
const maxWaitMs = 3_600_000;

export function startEndpoints(bus: Bus, client: Client, options: EndpointsOptions): Promise<MicroService> {
  const { names, runtime } = options;
  const endpoint = (
    verb: "start" | "status" | "result" | "schedule",
    description: string,
    answer: (argument: string, message: CoreMessage) => Promise<object>,
  ) => ({
    name: verb,
    subject: names.endpoint(verb),
    metadata: { description },
    handler: (message: CoreMessage) =>
      reply(bus, answer(names.parseEndpoint(message.subject) ?? "", message)),
  });
  return startMicroService(
    bus,
    {
      name: "holdfast",
      version: options.version,
      description: "Durable orchestrations: start, status, result, update",
      endpoints: [
        endpoint(
          "start",
          "start.<orchestration>, body: input as JSON; headers Holdfast-Id: instance id, Holdfast-Delay: how long it waits, Holdfast-Flow: limits by key as JSON, Holdfast-Blob: where a big input lies",
          (name, message) => start(client, options, name, message),
        ),
        endpoint("status", "status.<instance id>", async (id) =>
          shown(await client.status(id, fitting(bus))),
        ),
        endpoint(
          "result",
          "result.<instance id>, header Holdfast-Wait: how long to wait, 30s by default",
          (id, message) => result(bus, client, id, message),
        ),
        endpoint(
          "schedule",
          'schedule.<schedule id>, body: {"do":"create","spec":{…}}, or update, pause, resume, trigger, backfill, delete; empty: how it stands',
          (id, message) => answerSchedule(client, id, message),
        ),
        {
          name: "update",
          subject: names.updates,
          metadata: {
            description:
              "update.<instance id>.<update>, body: input as JSON; headers Holdfast-Update-Id: applied once, Holdfast-Wait, Holdfast-Wait-For: accepted or completed",
          },
          handler: (message: CoreMessage) =>
            reply(bus, update(client, names.parseUpdate(message.subject), message)),
        },
      ],
    },
    runtime,
  );
}

async function start(
  client: Client,
  { orchestrations }: EndpointsOptions,
  name: string,
  message: CoreMessage,
): Promise<object> {
  const known = await orchestrations();
  if (known && !known.includes(name)) {
    const names = known.length === 0 ? "none" : [...known].sort().join(", ");
    throw new HoldfastError({
      code: "unknown_orchestration",
      message: `there is no orchestration ${JSON.stringify(name)}; there are: ${names}`,
    });
  }
  const input =
    message.body.length === 0 ? { kind: "ok" as const, value: undefined } : parseJson(message.body);
  if (input.kind === "invalid") {
    throw new HoldfastError({ code: "invalid_json", message: `the input is ${input.message}` });
  }
  const id = header(message, headerNames.instanceId);
  const inputBlob = blobOf(message);
  const delay = header(message, headerNames.delay);
  const { instanceId } = await client.start(name, input.value, {
    id,
    inputBlob,
    delay: delay === undefined ? undefined : parseDuration(delay, headerNames.delay),
    flow: flowOf(message),
  });
  return { instanceId };
}

function flowOf(message: CoreMessage): FlowOptions | undefined {
  const text = header(message, headerNames.flow);
  if (text === undefined) return undefined;
  const flow = parseJson(new TextEncoder().encode(text));
  if (flow.kind === "ok") return parseFlow(flow.value);
  throw new HoldfastError({ code: "invalid_header", message: `header Holdfast-Flow: ${flow.message}` });
}

async function update(
  client: Client,
  [instanceId = "", name = ""]: readonly string[],
  message: CoreMessage,
): Promise<object> {
  const input =
    message.body.length === 0 ? { kind: "ok" as const, value: undefined } : parseJson(message.body);
  if (input.kind === "invalid")
    throw new HoldfastError({ code: "invalid_json", message: `the input is ${input.message}` });
  const wait = header(message, headerNames.wait);
  const timeout = Math.min(
    wait === undefined ? defaultWaitMs : parseDuration(wait, headerNames.wait),
    maxWaitMs,
  );
  const options = { id: header(message, updateIdHeader), timeout };
  const waitFor = header(message, headerNames.waitFor) ?? "completed";
  if (waitFor !== "accepted" && waitFor !== "completed")
    throw new HoldfastError({
      code: "invalid_header",
      message: `header Holdfast-Wait-For: ${JSON.stringify(waitFor)} is neither accepted nor completed`,
    });
  if (waitFor === "completed") {
    const answer = await client.update(instanceId, name, input.value, options);
    return { status: "completed", answer };
  }
  const { updateId } = await client.startUpdate(instanceId, name, input.value, options);
  return { status: "accepted", updateId };
}

function blobOf(message: CoreMessage): BlobRef | undefined {
  const text = header(message, headerNames.blob);
  if (text === undefined) return undefined;
  const ref = decode(BlobRef, new TextEncoder().encode(text));
  if (ref.kind === "ok") return ref.value;
  throw new HoldfastError({ code: "invalid_header", message: `header Holdfast-Blob: ${ref.message}` });
}

async function result(bus: Bus, client: Client, id: string, message: CoreMessage): Promise<object> {
  const wait = header(message, headerNames.wait);
  const waitMs = wait === undefined ? defaultWaitMs : parseDuration(wait, headerNames.wait);
  const view = await client.waitForEnd(id, Math.min(waitMs, maxWaitMs), fitting(bus));
  if (!view) {
    throw new HoldfastError({ code: "instance_not_found", message: `there is no instance ${id}` });
  }
  return shown(view);
}

/** A larger value does not fit into a reply: the reply says where it is stored instead. */
const fitting = (bus: Bus): ViewOptions => ({ largestBytes: bus.maxPayloadBytes - headroomBytes });

/** Without stacks: a client that may read a result need not see the names of source files. */
function shown(view: InstanceView): object {
  return { ...view, ...(view.error === undefined ? {} : { error: withoutStack(view.error) }) };
}

function withoutStack({ stack: _, cause, ...failure }: Failure): Failure {
  return cause === undefined ? failure : { ...failure, cause: withoutStack(cause) };
}

/** Header names are matched without regard to case: some clients write them in lower case. */
function header(message: CoreMessage, name: string): string | undefined {
  const found = Object.entries(message.headers).find(([key]) => key.toLowerCase() === name.toLowerCase());
  return found?.[1] === "" ? undefined : found?.[1];
}

async function reply(bus: Bus, answer: Promise<object>): Promise<MicroReply> {
  try {
    const { input, customStatus, ...rest }: { input?: unknown; customStatus?: unknown } = await answer;
    // If the result does not fit, the reply leaves out the input first, then the custom status.
    for (const shown of [{ input, customStatus, ...rest }, { customStatus, ...rest }, rest]) {
      const body = encode({ ok: true, ...shown });
      if (body.length <= bus.maxPayloadBytes) return { body };
    }
    return refusal("payload_too_large", "the answer does not fit into one message: use the client library");
  } catch (error) {
    if (!(error instanceof HoldfastError) && !isFault(error)) throw error;
    const hint = isFault(error) && error.hint !== undefined ? `. ${error.hint}` : "";
    return refusal(error.code, `${error.message}${hint}`);
  }
}

const refusal = (code: string, message: string): MicroReply => ({
  body: encode({ ok: false, error: { code, message } }),
  error: { code: code === "instance_not_found" ? 404 : 400, description: code },
});
