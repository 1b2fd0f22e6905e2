/** What a user without our library does: subjects, JSON, headers. Nothing else is known of the installation. */
import { connect, headers, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { z } from "zod";
import { until } from "../support/stack.ts";

/** What `hold` of the test's application says of itself. */
export const HoldStatus = z.object({
  host: z.string(),
  openedAt: z.number(),
  seen: z.array(
    z.union([
      z.object({ count: z.int(), host: z.string(), at: z.number() }),
      z.object({ lost: z.string(), reason: z.string(), at: z.number() }),
    ]),
  ),
});
export type HoldStatus = z.infer<typeof HoldStatus>;

const Answer = z.looseObject({
  ok: z.boolean(),
  status: z.string().optional(),
  output: z.unknown(),
  customStatus: z.unknown(),
  error: z.looseObject({ code: z.string(), message: z.string() }).optional(),
});
export type Answer = z.infer<typeof Answer>;

const StreamInfo = z.looseObject({
  config: z.looseObject({ name: z.string(), num_replicas: z.int() }),
  state: z.looseObject({ messages: z.int() }),
  cluster: z
    .looseObject({
      leader: z.string().optional(),
      replicas: z.array(z.looseObject({ name: z.string(), current: z.boolean() })).optional(),
    })
    .optional(),
});
export type StreamInfo = z.infer<typeof StreamInfo>;

export class Driver implements AsyncDisposable {
  readonly #connection: NatsConnection;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  static async connect(ports: readonly number[]): Promise<Driver> {
    const servers = ports.map((port) => `127.0.0.1:${port}`);
    const options = { servers, maxReconnectAttempts: -1, reconnectTimeWait: 100, ignoreClusterUpdates: true };
    return new Driver(await connect(options));
  }

  /** Returns when it is durably accepted. Asked again until then: the id makes that harmless. */
  async start(id: string, name: string, input: unknown): Promise<void> {
    await this.#accepted(`orchestrations.${id}.start.${name}`, input, `start-${id}`);
  }

  /** The same, harmless by its message id. */
  async signal(id: string, name: string, payload: unknown, messageId: string): Promise<void> {
    await this.#accepted(`orchestrations.${id}.signal.${name}`, payload, messageId);
  }

  async status(id: string): Promise<Answer> {
    return this.#ask(`status.${id}`);
  }

  async result(id: string, waitMs = 60_000): Promise<Answer> {
    return until(
      `the result of ${id}`,
      async () => {
        const answer = await this.#ask(`result.${id}`, `${waitMs}ms`, waitMs + 5_000).catch(() => undefined);
        return answer?.status !== undefined && answer.status !== "running" ? answer : undefined;
      },
      waitMs,
    );
  }

  /** The status of a `hold`, as soon as it is so. */
  async held(id: string, what: string, isSo: (status: HoldStatus) => boolean, withinMs = 60_000) {
    return until(
      `${id}: ${what}`,
      async () => {
        const answer = await this.status(id).catch(() => undefined);
        const parsed = HoldStatus.safeParse(answer?.customStatus);
        return parsed.success && isSo(parsed.data) ? parsed.data : undefined;
      },
      withinMs,
    );
  }

  async streams(): Promise<StreamInfo[]> {
    const all: StreamInfo[] = [];
    for (;;) {
      const body = JSON.stringify({ offset: all.length });
      const page = z
        .looseObject({ total: z.int(), streams: z.array(StreamInfo).nullable() })
        .parse((await this.#connection.request("$JS.API.STREAM.LIST", body, { timeout: 10_000 })).json());
      all.push(...(page.streams ?? []));
      if (all.length >= page.total || !page.streams?.length) return all;
    }
  }

  async stream(name: string): Promise<StreamInfo> {
    const reply = await this.#connection.request(`$JS.API.STREAM.INFO.${name}`, "", { timeout: 10_000 });
    return StreamInfo.parse(reply.json());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }

  async #accepted(subject: string, payload: unknown, messageId: string): Promise<void> {
    const head = headers();
    head.set("Nats-Msg-Id", messageId);
    await until(`the acknowledgement of ${subject}`, async () => {
      const options = { headers: head, timeout: 2_000 };
      const reply = await this.#connection
        .request(subject, JSON.stringify(payload), options)
        .catch((): Msg | undefined => undefined);
      const ack = z.looseObject({ stream: z.string(), seq: z.int() }).safeParse(reply?.json());
      return ack.success;
    });
  }

  async #ask(subject: string, wait?: string, timeout = 5_000): Promise<Answer> {
    const head = headers();
    if (wait !== undefined) head.set("Holdfast-Wait", wait);
    const reply = await this.#connection.request(subject, "", { headers: head, timeout });
    return Answer.parse(reply.json());
  }
}
