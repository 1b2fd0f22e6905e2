/** What a user without our library does: subjects, JSON, headers. Nothing else is known of the installation. */
import {
  connect,
  headers,
  type Msg,
  type NatsConnection,
  nkeyAuthenticator,
  type RequestOptions,
} from "@nats-io/transport-node";
import { z } from "zod";
import { until } from "../support/processes/stack.ts";

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
  output: z.unknown().optional(),
  customStatus: z.unknown().optional(),
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

const unfinished = ["pending", "running", "parked"];
const pieceMs = 10_000;

export class Driver implements AsyncDisposable {
  readonly #connection: NatsConnection;
  /** May look at streams, which a client may not. */
  readonly #gateway: NatsConnection;
  /** Takes the keys that are there now, for its next connection. */
  readonly renewKeys: () => Promise<void>;

  constructor(connection: NatsConnection, gateway: NatsConnection, renewKeys: () => Promise<void>) {
    this.#connection = connection;
    this.#gateway = gateway;
    this.renewKeys = renewKeys;
  }

  static async connect(
    ports: readonly number[],
    keyOf: (role: "client" | "gateway") => Promise<string>,
  ): Promise<Driver> {
    const servers = ports.map((port) => `127.0.0.1:${port}`);
    const options = { servers, maxReconnectAttempts: -1, reconnectTimeWait: 100, ignoreClusterUpdates: true };
    const seeds = { client: new Uint8Array(), gateway: new Uint8Array() };
    const renewKeys = async (): Promise<void> => {
      seeds.client = new TextEncoder().encode(await keyOf("client"));
      seeds.gateway = new TextEncoder().encode(await keyOf("gateway"));
    };
    await renewKeys();
    // The server waits two seconds for a log-in, which a busy machine may take.
    const as = (role: "client" | "gateway"): Promise<NatsConnection> =>
      until(`a connection as ${role}`, () => {
        const authenticator = nkeyAuthenticator(() => seeds[role]);
        return connect({ ...options, authenticator, inboxPrefix: `_INBOX_${role}` }).catch(() => undefined);
      });
    return new Driver(await as("client"), await as("gateway"), renewKeys);
  }

  /** Returns when it is durably accepted. Asked again until then: the id makes that harmless. */
  async start(id: string, name: string, input: unknown): Promise<void> {
    await this.#accepted(`orchestrations.${id}.start.${name}`, input, `start-${id}`);
  }

  /** The same, harmless by its message id. */
  async signal(id: string, name: string, payload: unknown, messageId: string): Promise<void> {
    await this.#accepted(`orchestrations.${id}.signal.${name}`, payload, messageId);
  }

  /** Undefined: no answer came, as while NATS is away. */
  async status(id: string): Promise<Answer | undefined> {
    return this.#ask(`status.${id}`);
  }

  async result(id: string, waitMs = 60_000): Promise<Answer> {
    const deadline = performance.now() + waitMs;
    let seen: Answer | undefined;
    while (performance.now() < deadline) {
      // In pieces: the process that answers may die meanwhile.
      const answer = await this.#ask(`result.${id}`, `${pieceMs}ms`, pieceMs + 5_000);
      if (answer?.status !== undefined && !unfinished.includes(answer.status)) return answer;
      seen = answer ?? seen;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`${id} did not end within ${waitMs} ms; it was last seen as ${JSON.stringify(seen)}`);
  }

  /** The status of a `hold`, as soon as it is so. */
  async held(id: string, what: string, isSo: (status: HoldStatus) => boolean, withinMs = 60_000) {
    return until(
      `${id}: ${what}`,
      async () => {
        const answer = await this.status(id);
        const parsed = HoldStatus.safeParse(answer?.customStatus);
        return parsed.success && isSo(parsed.data) ? parsed.data : undefined;
      },
      withinMs,
    );
  }

  async streams(): Promise<StreamInfo[]> {
    const names: string[] = [];
    for (;;) {
      const body = JSON.stringify({ offset: names.length });
      const page = z
        .looseObject({ total: z.int(), streams: z.array(z.string()).nullable() })
        .parse((await this.#gateway.request("$JS.API.STREAM.NAMES", body, { timeout: 10_000 })).json());
      names.push(...(page.streams ?? []));
      if (names.length >= page.total || !page.streams?.length) break;
    }
    return Promise.all(names.map((name) => this.stream(name)));
  }

  async stream(name: string): Promise<StreamInfo> {
    return until(`what stream ${name} is like`, async () => {
      const reply = await this.#gateway
        .request(`$JS.API.STREAM.INFO.${name}`, "", { timeout: 5_000 })
        .catch(() => undefined);
      return StreamInfo.safeParse(reply?.json()).data;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
    await this.#gateway.close();
  }

  async #accepted(subject: string, payload: unknown, messageId: string): Promise<void> {
    const head = headers();
    head.set("Nats-Msg-Id", messageId);
    await until(
      `the acknowledgement of ${subject}`,
      async () => {
        const reply = await this.#request(subject, JSON.stringify(payload), {
          headers: head,
          timeout: 2_000,
        });
        return z.looseObject({ stream: z.string(), seq: z.int() }).safeParse(reply?.json()).success;
      },
      60_000,
    );
  }

  async #ask(subject: string, wait?: string, timeout = 5_000): Promise<Answer | undefined> {
    const head = headers();
    if (wait !== undefined) head.set("Holdfast-Wait", wait);
    const reply = await this.#request(subject, "", { headers: head, timeout });
    return reply && Answer.parse(reply.json());
  }

  #request(subject: string, body: string, options: RequestOptions): Promise<Msg | undefined> {
    return this.#connection.request(subject, body, options).catch(() => undefined);
  }
}
