/**
 * The NATS services protocol (ADR-32) over `Bus.subscribe`: `nats micro ls`, `info` and `stats` list the
 * service, and any client may call it. Written by hand because the published library is built for another
 * version of the client, and the protocol is small.
 */

import { Fault, messageOf } from "../errors/index.ts";
import { announceFault, type Random, type Runtime, token } from "../runtime/index.ts";
import type { Bus, CoreMessage, Headers, Stoppable } from "./bus.ts";
import { encode } from "./codec.ts";
import { headerNames } from "./delivery/header-names.ts";

export interface MicroReply {
  body: Uint8Array;
  /** Sent as headers beside the body, as the protocol requires. */
  error?: { code: number; description: string };
}

interface MicroEndpoint {
  name: string;
  subject: string;
  /** Instances with the same queue share the requests; with `none` each instance gets every request. */
  queue?: string | "none";
  metadata?: Record<string, string>;
  /** Returns undefined if another instance is to reply. */
  handler(message: CoreMessage): Promise<MicroReply | undefined>;
}

interface MicroServiceSpec {
  name: string;
  /** Semantic version. */
  version: string;
  description: string;
  endpoints: MicroEndpoint[];
}

interface Counters {
  num_requests: number;
  num_errors: number;
  last_error: string;
  processingMs: number;
}

const defaultQueue = "q";
const namePattern = /^[A-Za-z0-9_-]+$/;
const versionPattern = /^\d+\.\d+\.\d+([-+].+)?$/;

export interface MicroService extends Stoppable {
  readonly id: string;
}

export async function startMicroService(
  bus: Bus,
  spec: MicroServiceSpec,
  runtime: Pick<Runtime, "clock" | "announce"> & { random: Random },
): Promise<MicroService> {
  if (!namePattern.test(spec.name) || !versionPattern.test(spec.version)) {
    throw new Fault("bug", {
      code: "invalid_service",
      message: `service ${spec.name} ${spec.version} needs a plain name and a semantic version`,
    });
  }
  const id = token(runtime.random, 20);
  const startedAt = new Date(runtime.clock.now()).toISOString();
  const identity = { name: spec.name, id, version: spec.version, metadata: {} };
  const counters = new Map<MicroEndpoint, Counters>();
  const subscriptions: Stoppable[] = [];

  const describe = (endpoint: MicroEndpoint) => ({
    name: endpoint.name,
    subject: endpoint.subject,
    queue_group: queueOf(endpoint) ?? "",
  });
  const answers = {
    PING: () => ({ type: "io.nats.micro.v1.ping_response", ...identity }),
    INFO: () => ({
      type: "io.nats.micro.v1.info_response",
      ...identity,
      description: spec.description,
      endpoints: spec.endpoints.map((endpoint) => ({
        ...describe(endpoint),
        metadata: endpoint.metadata ?? {},
      })),
    }),
    STATS: () => ({
      type: "io.nats.micro.v1.stats_response",
      ...identity,
      started: startedAt,
      endpoints: spec.endpoints.map((endpoint) => ({
        ...describe(endpoint),
        ...figures(counters.get(endpoint)),
      })),
    }),
  };

  for (const [verb, answer] of Object.entries(answers)) {
    for (const scope of ["", `.${spec.name}`, `.${spec.name}.${id}`]) {
      subscriptions.push(
        await bus.subscribe(`$SRV.${verb}${scope}`, {}, (message) => message.reply?.(encode(answer()))),
      );
    }
  }
  for (const endpoint of spec.endpoints) {
    const count: Counters = { num_requests: 0, num_errors: 0, last_error: "", processingMs: 0 };
    counters.set(endpoint, count);
    subscriptions.push(
      await bus.subscribe(endpoint.subject, subscription(endpoint), (message) => {
        void serve(endpoint, count, message, runtime);
      }),
    );
  }
  return {
    id,
    stop: async () => {
      await Promise.all(subscriptions.splice(0).map((subscription) => subscription.stop()));
    },
  };
}

const queueOf = ({ queue = defaultQueue }: MicroEndpoint): string | undefined =>
  queue === "none" ? undefined : queue;

const subscription = (endpoint: MicroEndpoint): { queue?: string } => {
  const queue = queueOf(endpoint);
  return queue === undefined ? {} : { queue };
};

async function serve(
  endpoint: MicroEndpoint,
  count: Counters,
  message: CoreMessage,
  runtime: Pick<Runtime, "clock" | "announce">,
): Promise<void> {
  if (message.reply === undefined) return; // SEC-4
  const began = runtime.clock.monotonic();
  const reply = await answer(endpoint, message, runtime);
  if (!reply) return;
  count.num_requests++;
  count.processingMs += runtime.clock.monotonic() - began;
  if (reply.error) {
    count.num_errors++;
    count.last_error = `${reply.error.code}:${reply.error.description}`;
  }
  message.reply(reply.body, errorHeaders(reply.error));
}

/** An error the handler did not catch is an internal error for the caller and is reported here as a fault. */
async function answer(
  endpoint: MicroEndpoint,
  message: CoreMessage,
  runtime: Pick<Runtime, "announce">,
): Promise<MicroReply | undefined> {
  try {
    return await endpoint.handler(message);
  } catch (error) {
    announceFault(runtime, `endpoint ${endpoint.name}`, error, { otherwise: "handler_threw" });
    return { body: new Uint8Array(0), error: { code: 500, description: messageOf(error) } };
  }
}

const errorHeaders = (error: MicroReply["error"]): Headers =>
  error === undefined
    ? {}
    : {
        [headerNames.serviceError]: error.description.replaceAll(/[\r\n\0]+/g, " ").slice(0, 1024),
        [headerNames.serviceErrorCode]: String(error.code),
      };

function figures(count: Counters | undefined) {
  const { num_requests = 0, num_errors = 0, last_error = "", processingMs = 0 } = count ?? {};
  return {
    num_requests,
    num_errors,
    last_error,
    processing_time: Math.round(processingMs * 1e6),
    average_processing_time: num_requests === 0 ? 0 : Math.round((processingMs * 1e6) / num_requests),
  };
}
