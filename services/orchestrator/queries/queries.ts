/**
 * Answers `query.<instanceId>.<name>` (Q1). Every orchestrator receives every query; the one that holds the
 * instance's partition answers, the others stay silent. While a partition changes hands no orchestrator
 * answers, and the client asks again.
 */
import {
  type Bus,
  type CoreMessage,
  encode,
  type MicroReply,
  type MicroService,
  parseJson,
  type Subjects,
  startMicroService,
} from "../../../shared/bus/index.ts";
import type { Asked } from "../../../shared/replay/index.ts";
import { once, type Runtime, type Service, sleep } from "../../../shared/runtime/index.ts";

/** A query to the code of one instance; answered when the running turn is over. */
export interface Question {
  readonly name: string;
  readonly input: unknown;
  answer(asked: Asked): void;
}

interface QueriesOptions {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  version: string;
  /** Returns undefined if this orchestrator does not hold the instance's partition. */
  partitionOf(instanceId: string): { ask(instanceId: string, question: Question): void } | undefined;
}

/** How long a query waits for an instance whose start is still in the inbox. */
const waitForStartMs = 2_000;
const lookAgainMs = 25;

export class Queries implements Service {
  readonly #options: QueriesOptions;
  readonly #ended = new AbortController();
  #service: MicroService | undefined;

  constructor(options: QueriesOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { bus, names, runtime, version } = this.#options;
    this.#service = await startMicroService(
      bus,
      {
        name: "holdfast-queries",
        version,
        description: "Questions about instances, answered by their owner",
        endpoints: [
          {
            name: "query",
            subject: names.queries,
            queue: "none",
            metadata: { description: "query.<instance id>.<name>, body: input as JSON" },
            handler: (message) => this.#answer(message),
          },
        ],
      },
      runtime,
    );
  }

  stop = once(async () => {
    this.#ended.abort();
    await this.#service?.stop();
  });

  async #answer({ subject, body }: CoreMessage): Promise<MicroReply | undefined> {
    const { names, bus, runtime, partitionOf } = this.#options;
    const address = names.parseQuery(subject);
    if (!address) return undefined;
    const { instanceId, name } = address;
    if (!partitionOf(instanceId)) return undefined;
    const input = body.length === 0 ? { kind: "ok" as const, value: undefined } : parseJson(body);
    if (input.kind === "invalid") return refused("invalid_json", `the input is ${input.message}`);
    const until = runtime.clock.monotonic() + waitForStartMs;
    for (;;) {
      const partition = partitionOf(instanceId);
      if (!partition || this.#ended.signal.aborted) return undefined;
      const asked = await new Promise<Asked>((answer) =>
        partition.ask(instanceId, { name, input: input.value, answer }),
      );
      if (asked.kind === "answered") return answered(asked.json, bus.maxPayloadBytes);
      const mayCome = asked.code === "instance_not_found" && runtime.clock.monotonic() < until;
      if (!mayCome || !(await this.#isWaiting(instanceId)))
        return refused(asked.code, asked.message, asked.details);
      await sleep(runtime.clock, lookAgainMs, this.#ended.signal);
    }
  }

  async #isWaiting(instanceId: string): Promise<boolean> {
    const { bus, names } = this.#options;
    const waiting = await bus.read(names.inboxStream, names.inboxOf(instanceId));
    return (waiting ?? []).some(({ subject }) => names.parseInbox(subject)?.verb.kind === "start");
  }
}

/** `json` is the answer, already serialized. */
function answered(json: string, maxBytes: number): MicroReply {
  const body = Buffer.from(`{"ok":true,"answer":${json}}`);
  if (body.length <= maxBytes) return { body };
  return refused(
    "payload_too_large",
    `the answer has ${body.length} bytes, and a message at most ${maxBytes}: ask for less`,
  );
}

const refused = (code: string, message: string, details?: unknown): MicroReply => ({
  body: encode({ ok: false, error: { code, message, ...(details === undefined ? {} : { details }) } }),
  error: { code: code === "instance_not_found" ? 404 : 400, description: code },
});
