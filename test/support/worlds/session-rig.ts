/**
 * Workers holding sessions without an orchestrator: claims and work are published by hand, reports read off the inbox. Of
 * an orchestrator there is only what passes claims on between workers.
 */
import { z } from "zod";
import {
  type ActivityReport,
  ActivityReport as ActivityReportSchema,
  type SessionClaim,
  type SessionReport,
  SessionReport as SessionReportSchema,
  type SessionWork,
} from "../../../schemas/index.ts";
import { ClaimPasses } from "../../../services/orchestrator/lane/claim-passes.ts";
import { workerConfig } from "../../../services/worker/config.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import { SessionService, type SessionTiming } from "../../../services/worker/sessions/index.ts";
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
import { noCapabilities } from "../../../shared/capabilities/index.ts";
import { collectApp } from "../../../shared/definitions/index.ts";
import { everythingAllowed } from "../../../shared/fleet/index.ts";
import { LeaseKeeper } from "../../../shared/leases/index.ts";
import { type Happening, type Service, systemRuntime } from "../../../shared/runtime/index.ts";
import { startNats, type TestNats } from "../nats/nats-server.ts";

export type SessionTold = SessionReport["report"];
export type CallTold = ActivityReport & { instanceId: string };

export interface HeldWorker {
  worker: Service;
  workerId: string;
  happenings: Happening[];
  leases: LeaseKeeper;
  bus: Bus;
}

export interface WorkerOptions {
  env?: Record<string, string>;
  timing?: Partial<SessionTiming>;
  appPath?: string;
  /** Only the session side, and no worker knows the others: they race for every claim. */
  alone?: boolean;
  /** A connection of its own, to be cut. */
  ownBus?: boolean;
}

type TaskLike = {
  name: string;
  input?: unknown;
  of?: number;
  attempt?: number;
  execution?: number;
  reportStart?: boolean;
  timeouts?: Record<string, number>;
};

export class SessionRig {
  readonly nats: TestNats;
  readonly bus: Bus;
  readonly names: Subjects;
  readonly told: SessionReport[] = [];
  readonly calls: CallTold[] = [];
  readonly signals: { instanceId: string; payload: unknown }[] = [];
  readonly happenings: Happening[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #workers = new Set<HeldWorker>();
  #probe: Consumption | undefined;
  #lastOf = 0;

  readonly #passes: ClaimPasses;

  private constructor(nats: TestNats, bus: Bus, names: Subjects) {
    this.nats = nats;
    this.bus = bus;
    this.names = names;
    this.#passes = new ClaimPasses({
      ...{
        bus,
        names,
        runtime: systemRuntime(),
        capabilities: noCapabilities,
        generation: everythingAllowed,
      },
    });
  }

  static async start(): Promise<SessionRig> {
    const nats = await startNats();
    const names = subjects();
    const bus = await connectBus({ url: nats.url, announce: () => undefined });
    await ensureTopology(bus, names, defaultTopology);
    const rig = new SessionRig(nats, bus, names);
    await rig.#listen();
    await rig.#passes.start();
    return rig;
  }

  async stop(): Promise<void> {
    await this.stopWorkers();
    await this.#probe?.stop();
    await this.#passes.stop();
    await this.bus.close();
    await this.nats.stop();
  }

  async stopWorkers(): Promise<void> {
    await Promise.all([...this.#workers].map((held) => this.stopWorker(held)));
  }

  async stopWorker(held: HeldWorker): Promise<void> {
    this.#workers.delete(held);
    await held.worker.stop();
    await held.leases.stop();
    if (held.bus !== this.bus) await held.bus.close();
  }

  async worker(definitions: Record<string, unknown>, options: WorkerOptions = {}): Promise<HeldWorker> {
    const config = workerConfig(z.object(workerSettings).parse(options.env ?? {}));
    const happenings: Happening[] = [];
    const runtime = systemRuntime((happening) => {
      happenings.push(happening);
      this.happenings.push(happening);
      this.look();
    });
    const identity = createIdentity(config, { host: "test-host", pid: process.pid }, runtime.random);
    const bus = options.ownBus
      ? await connectBus({ url: this.nats.url, announce: runtime.announce })
      : this.bus;
    const { names } = this;
    const leases = new LeaseKeeper({
      ...{ bus, bucket: names.bucket("leases"), runtime, ttlMs: config.sessions.leaseTtlMs },
    });
    const app = collectApp(definitions);
    const { timing, appPath } = options;
    const more = { leases, ...(timing ? { timing } : {}), ...(appPath === undefined ? {} : { appPath }) };
    const base = { bus, names, runtime, app, identity, config, payloads: new Payloads(bus.blobs) };
    const worker = options.alone
      ? new SessionService({
          ...base,
          ...more,
          generation: everythingAllowed,
          fleetHeaders: {},
          loadChanged: () => undefined,
        })
      : new Worker(base, { sessions: (deps) => new SessionService({ ...deps, ...more }) });
    await worker.start();
    const held = { worker, workerId: identity.workerId, happenings, leases, bus };
    this.#workers.add(held);
    return held;
  }

  /** Published, not awaited to be taken. */
  async claim(
    type: string,
    sessionId: string,
    over: Partial<Omit<SessionClaim, "config">> & { config?: unknown } = {},
  ): Promise<void> {
    const { config, ...rest } = over;
    const claim = {
      v: 1,
      instanceId: "i1",
      sessionId,
      attachment: 1,
      type,
      requires: { tags: [], resources: {} },
      affinityKey: `${type}-0`,
      metadata: {},
      openedAt: Date.now(),
      deadlineAt: Date.now() + 60_000,
      ...(config === undefined ? {} : { config: { json: config } }),
      ...rest,
    };
    const msgId = `claim-${sessionId}-${claim.attachment}`;
    await this.bus.publish(this.names.claim(type, sessionId), encode(claim), { msgId });
  }

  /** Publishes a claim and waits until a worker holds the session. */
  async open(
    type: string,
    sessionId: string,
    over: Parameters<SessionRig["claim"]>[2] = {},
  ): Promise<Extract<SessionTold, { kind: "activated" }>["on"]> {
    await this.claim(type, sessionId, over);
    const activated = await this.heard(sessionId, "activated", over.attachment ?? 1);
    return activated.on;
  }

  heard<K extends SessionTold["kind"]>(
    sessionId: string,
    kind: K,
    attachment = 1,
    timeoutMs?: number,
  ): Promise<Extract<SessionTold, { kind: K }>> {
    return this.until(
      `${kind} of ${sessionId}`,
      () =>
        this.told.find(
          (one) => one.sessionId === sessionId && one.attachment === attachment && one.report.kind === kind,
        )?.report as Extract<SessionTold, { kind: K }> | undefined,
      timeoutMs,
    );
  }

  /** Without `claimed`, which is said only where `init` takes a moment. */
  kinds(sessionId: string): string[] {
    return this.told
      .filter((one) => one.sessionId === sessionId && one.report.kind !== "claimed")
      .map((one) => one.report.kind);
  }

  async work(workerId: string, sessionId: string, work: Omit<SessionWork, "v">): Promise<void> {
    await this.bus.publish(this.names.sessionWork(workerId, sessionId), encode({ v: 1, ...work }));
  }

  /** Returns its event id. */
  async call(
    on: { workerId: string; epoch: number },
    sessionId: string,
    task: TaskLike,
    call = true,
  ): Promise<number> {
    const { name, input = null, of = ++this.#lastOf, ...rest } = task;
    const whole = {
      v: 1,
      instanceId: "i1",
      execution: 1,
      of,
      attempt: 1,
      name,
      input: { json: input },
      scheduledAt: Date.now(),
      timeouts: {},
      reportStart: false,
      ...rest,
    };
    await this.work(on.workerId, sessionId, { kind: "call", epoch: on.epoch, call, task: whole } as never);
    return of;
  }

  /** A call on the queue of a pool. */
  async ask(poolId: string, task: TaskLike & { instanceId?: string }): Promise<number> {
    const { name, input = null, of = ++this.#lastOf, ...rest } = task;
    const whole = {
      ...{ v: 1, instanceId: "i1", execution: 1, of, attempt: 1, name, input: { json: input } },
      ...{ scheduledAt: Date.now(), timeouts: {}, reportStart: false, ...rest },
    };
    await this.bus.publish(this.names.activity(`pool-${poolId}`, name), encode(whole));
    return of;
  }

  /** What became of a call. */
  async result(of: number, timeoutMs?: number): Promise<ActivityReport["result"]> {
    const report = await this.until(
      `a report of ${of}`,
      () => this.calls.find((one) => one.of === of && one.result.kind !== "started"),
      timeoutMs,
    );
    return report.result;
  }

  async output(of: number): Promise<unknown> {
    const result = await this.result(of);
    if (result.kind !== "completed" || !("json" in result.output)) {
      throw new Error(`call ${of} ended as ${JSON.stringify(result)}`);
    }
    return result.output.json;
  }

  happening<K extends Happening["kind"]>(
    kind: K,
    fits: (happening: Extract<Happening, { kind: K }>) => boolean = () => true,
    timeoutMs?: number,
  ): Promise<Extract<Happening, { kind: K }>> {
    const ofKind = () =>
      this.happenings.filter((one): one is Extract<Happening, { kind: K }> => one.kind === kind);
    return this.until(kind, () => ofKind().find(fits), timeoutMs).catch((error: Error) => {
      throw new Error(`${error.message}; the last ones were ${JSON.stringify(ofKind().slice(-5))}`);
    });
  }

  look = (): void => {
    for (const check of [...this.#waiting]) check();
  };

  /** Waits for a fact: everything that could make it true calls `look`. */
  until<T>(what: string, find: () => T | undefined, timeoutMs = 15_000): Promise<T> {
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

  /** For facts only the server knows. */
  async poll(what: string, holds: () => Promise<boolean>, timeoutMs = 15_000): Promise<void> {
    const until = Date.now() + timeoutMs;
    while (!(await holds())) {
      if (Date.now() > until) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async untilNoClaims(): Promise<void> {
    await this.poll("an empty queue of claims", async () => {
      return (await this.bus.streamInfo(this.names.claimsStream))?.messages === 0;
    });
  }

  async #listen(): Promise<void> {
    const { bus, names } = this;
    const spec = { stream: names.inboxStream, name: "probe", filter: "inbox.>", ackWaitMs: 30_000 };
    await bus.ensureConsumer(spec);
    // What was acknowledged comes again where the server dies before it has written that down.
    const seen = new Set<number>();
    this.#probe = await bus.consume(spec.stream, spec.name, {
      maxMessages: 500,
      onMessage: (message) => {
        if (seen.has(message.seq)) return message.ack();
        seen.add(message.seq);
        const [, , instanceId = "", verb] = message.subject.split(".");
        if (verb === "signal") {
          this.signals.push({ instanceId, payload: JSON.parse(new TextDecoder().decode(message.body)) });
        } else if (verb === "session") {
          const report = decode(SessionReportSchema, message.body);
          if (report.kind === "invalid") throw new Error(`not a session report: ${report.message}`);
          this.told.push(report.value);
        } else {
          const report = decode(ActivityReportSchema, message.body);
          if (report.kind === "invalid") throw new Error(`not a report: ${report.message}`);
          this.calls.push({ instanceId, ...report.value });
        }
        message.ack();
        this.look();
      },
    });
  }
}
