/** A worker without an orchestrator: tasks are published by hand, reports are read off the inbox. */
import { z } from "zod";
import {
  type ActivityReport,
  type ActivityTask,
  ActivityReport as ReportSchema,
} from "../../../schemas/index.ts";
import { workerConfig } from "../../../services/worker/config.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import { workerSettings } from "../../../services/worker/settings.ts";
import { Worker } from "../../../services/worker/worker.ts";
import {
  type Bus,
  type Consumption,
  connectBus,
  decode,
  defaultTopology,
  encode,
  ensureTopology,
  Payloads,
  type Subjects,
  subjects,
} from "../../../shared/bus/index.ts";
import { collectApp } from "../../../shared/definitions/index.ts";
import { type Announce, type Happening, systemRuntime } from "../../../shared/runtime/index.ts";
import { startNats, type TestNats } from "../nats/nats-server.ts";

export type Reported = ActivityReport & { instanceId: string };

export interface RunningWorker {
  worker: Worker;
  workerId: string;
  happenings: Happening[];
}

/** Waits for a fact: everything that could make it true calls `look`. */
class Facts {
  readonly #waiting = new Set<() => void>();

  look = (): void => {
    for (const check of this.#waiting) check();
  };

  until<T>(what: string, find: () => T | undefined, timeoutMs = 20_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const found = find();
        if (found === undefined) return;
        clearTimeout(timer);
        this.#waiting.delete(check);
        resolve(found);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(check);
        reject(new Error(`waited ${timeoutMs} ms in vain for ${what}`));
      }, timeoutMs);
      this.#waiting.add(check);
      check();
    });
  }
}

export class ActivityRig {
  readonly nats: TestNats;
  readonly bus: Bus;
  readonly names: Subjects;
  readonly reports: Reported[] = [];
  readonly facts = new Facts();
  readonly #workers = new Set<RunningWorker>();
  #probe: Consumption | undefined;

  private constructor(nats: TestNats, bus: Bus, names: Subjects) {
    this.nats = nats;
    this.bus = bus;
    this.names = names;
  }

  static async start(): Promise<ActivityRig> {
    const nats = await startNats();
    const names = subjects();
    const bus = await connectBus({ url: nats.url, announce: () => undefined });
    await ensureTopology(bus, names, defaultTopology);
    const rig = new ActivityRig(nats, bus, names);
    await rig.#listen();
    return rig;
  }

  async stop(): Promise<void> {
    await this.stopWorkers();
    await this.#probe?.stop();
    await this.bus.close();
    await this.nats.stop();
  }

  async stopWorkers(): Promise<void> {
    await Promise.all([...this.#workers].map(({ worker }) => worker.stop()));
    this.#workers.clear();
  }

  async startWorker(
    definitions: Record<string, unknown>,
    env: Record<string, string> = {},
    announce: Announce = () => undefined,
  ): Promise<RunningWorker> {
    const config = workerConfig(z.object(workerSettings).parse(env));
    const happenings: Happening[] = [];
    const runtime = systemRuntime((happening) => {
      happenings.push(happening);
      announce(happening);
      this.facts.look();
    });
    const identity = createIdentity(config, { host: "test-host", pid: process.pid }, runtime.random);
    const { bus, names } = this;
    const worker = new Worker({
      bus,
      names,
      runtime,
      app: collectApp(definitions),
      identity,
      config,
      payloads: new Payloads(bus.blobs),
    });
    await worker.start();
    const running = { worker, workerId: identity.workerId, happenings };
    this.#workers.add(running);
    return running;
  }

  async publishTask(
    task: Partial<Omit<ActivityTask, "instanceId" | "name" | "input">> & {
      instanceId: string;
      name: string;
      input?: unknown;
    },
    queue = "default",
  ): Promise<void> {
    const { instanceId, name, input = null, ...rest } = task;
    const whole = {
      v: 1,
      instanceId,
      execution: 1,
      of: 1,
      attempt: 1,
      name,
      input: { json: input },
      scheduledAt: Date.now(),
      timeouts: {},
      reportStart: false,
      ...rest,
    };
    await this.publishRaw(encode(whole), name, queue);
  }

  async publishRaw(body: Uint8Array, name: string, queue = "default"): Promise<void> {
    await this.bus.publish(this.names.activity(queue, name), body);
  }

  /** The first report of that instance that is no `started`, or fits. */
  report(
    instanceId: string,
    fits: (report: Reported) => boolean = (report) => report.result.kind !== "started",
  ): Promise<Reported> {
    return this.facts.until(`a report of ${instanceId}`, () =>
      this.reports.find((report) => report.instanceId === instanceId && fits(report)),
    );
  }

  /** Nothing waits and nothing is handed out any more: what was published is gone from the work queue. */
  async untilQueueIsEmpty(): Promise<void> {
    await this.poll("an empty queue", async () => {
      const info = await this.bus.streamInfo(this.names.activitiesStream);
      return info?.messages === 0;
    });
  }

  /** For facts only the server knows. */
  async poll(what: string, holds: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
    const until = Date.now() + timeoutMs;
    while (!(await holds())) {
      if (Date.now() > until) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async #listen(): Promise<void> {
    const { bus, names } = this;
    const spec = { stream: names.inboxStream, name: "probe", filter: "inbox.>", ackWaitMs: 30_000 };
    await bus.ensureConsumer(spec);
    this.#probe = await bus.consume(spec.stream, spec.name, {
      maxMessages: 500,
      onMessage: (message) => {
        const instanceId = message.subject.split(".")[2] ?? "";
        const report = decode(ReportSchema, message.body);
        if (report.kind === "invalid") throw new Error(`not a report: ${report.message}`);
        this.reports.push({ instanceId, ...report.value });
        message.ack();
        this.facts.look();
      },
    });
  }
}
