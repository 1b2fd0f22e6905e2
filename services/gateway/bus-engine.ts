/** The engine as the bus shows it: the public subjects, the read models, the histories. */
import {
  type Commit,
  InstanceSummary,
  type SessionWork,
  terminalStatuses,
  type WorkerControl,
} from "../../schemas/index.ts";
import { Bucket, type Bus, encode, type Subjects } from "../../shared/bus/index.ts";
import type { HistoryStore } from "../../shared/history/index.ts";
import { type Runtime, token } from "../../shared/runtime/index.ts";
import type { Engine } from "./engine.ts";
import { Problem, unknownOutcome } from "./http/problem.ts";
import { parseBody } from "./live/bucket-tail.ts";
import type { LiveView } from "./live/live-view.ts";

export interface BusEngineOptions {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  history: HistoryStore;
  live: LiveView;
}

const controlTimeoutMs = 2_000;

export class BusEngine implements Engine {
  readonly #options: BusEngineOptions;
  readonly #instances: Bucket;

  constructor(options: BusEngineOptions) {
    this.#options = options;
    this.#instances = new Bucket(options.bus, options.names.bucket("instances"));
  }

  async start(name: string, input: unknown, { id }: { id?: string | undefined }) {
    const { names, runtime } = this.#options;
    const instanceId = id ?? token(runtime.random, 20);
    // The message id makes a retry of the caller the same start.
    await this.#publish(names.start(instanceId, name), input ?? null, `start-${instanceId}`);
    return { instanceId };
  }

  signal(instanceId: string, event: string, payload: unknown): Promise<void> {
    return this.#publish(this.#options.names.signal(instanceId, event), payload ?? null);
  }

  cancel(instanceId: string, reason?: string): Promise<void> {
    return this.#publish(
      this.#options.names.verb(instanceId, "cancel"),
      reason === undefined ? {} : { reason },
    );
  }

  terminate(instanceId: string, reason?: string): Promise<void> {
    return this.#publish(
      this.#options.names.verb(instanceId, "terminate"),
      reason === undefined ? {} : { reason },
    );
  }

  async status(instanceId: string): Promise<InstanceSummary | undefined> {
    const entry = await this.#instances.get(instanceId);
    return entry && parseBody(InstanceSummary, entry.value);
  }

  async ended(instanceId: string, waitMs: number, signal: AbortSignal): Promise<InstanceSummary | undefined> {
    const { runtime } = this.#options;
    const until = runtime.clock.monotonic() + waitMs;
    let look: () => void = () => undefined;
    // Subscribed before the first look, so that an end between them is not missed; looked at again each second all
    // the same, because a notice is a hint.
    const unwatch = waitMs > 0 ? await this.onChange(instanceId, () => look()) : () => undefined;
    try {
      for (;;) {
        const summary = await this.status(instanceId);
        if (summary && terminalStatuses.includes(summary.status)) return summary;
        const left = until - runtime.clock.monotonic();
        if (left <= 0 || signal.aborted) return undefined;
        await new Promise<void>((resolve) => {
          look = resolve;
          runtime.clock.after(Math.min(left, 1_000), resolve);
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
      }
    } finally {
      unwatch();
    }
  }

  history(instanceId: string): Promise<Commit[] | undefined> {
    return this.#options.history.readAll(instanceId);
  }

  async evict(sessionId: string, reason?: string): Promise<void> {
    const { live, names } = this.#options;
    const session = live.session(sessionId);
    if (!session?.workerId)
      throw new Problem({ status: 409, code: "session_unheld", message: "nobody holds it" });
    const work: SessionWork = {
      v: 1,
      kind: "evict",
      ...(session.epoch === undefined ? {} : { epoch: session.epoch }),
      ...(reason === undefined ? {} : { reason }),
    };
    await this.#publish(names.sessionWork(session.workerId, sessionId), work);
  }

  async drain(workerId: string): Promise<void> {
    const { bus, names } = this.#options;
    const control: WorkerControl = { kind: "drain" };
    const reply = await bus.request(names.workerControl(workerId), encode(control), {
      timeoutMs: controlTimeoutMs,
    });
    if (reply.kind === "reply") return;
    throw new Problem({
      status: 503,
      code: "worker_silent",
      message: `worker ${workerId} did not answer`,
      hint: "It may be gone or stalled; its sessions are lost when their leases expire.",
    });
  }

  async onChange(instanceId: string, listener: () => void): Promise<() => void> {
    const { bus, names } = this.#options;
    const subscription = await bus.subscribe(names.noticesOf(instanceId), {}, listener);
    return () => void subscription.stop();
  }

  async #publish(subject: string, value: unknown, msgId?: string): Promise<void> {
    const outcome = await this.#options.bus.publish(
      subject,
      encode(value),
      msgId === undefined ? {} : { msgId },
    );
    if (outcome.kind !== "stored") throw unknownOutcome();
  }
}
