/**
 * A whole installation as it runs in production: a real nats-server and real processes of the built services. What a
 * test does to them (kill, pause, restart) is done to processes; what it learns, it learns from the client or the bus.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import {
  type Bus,
  connectBus,
  defaultTopology,
  ensureTopology,
  type Subjects,
  subjects,
} from "../../../shared/bus/index.ts";
import { type Capabilities, noCapabilities } from "../../../shared/capabilities/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/index.ts";
import { startNats, type TestNats } from "../nats/nats-server.ts";
import { type SecuredNats, startSecuredNats } from "../nats/secured-nats.ts";
import { keepLog } from "./service-logs.ts";

export type ServiceName = "orchestrator" | "worker" | "watcher" | "gateway";

export interface ServiceProcess {
  readonly service: ServiceName;
  /** The id it announced when it was ready. */
  readonly id: string;
  readonly pid: number;
  /** Everything it has logged so far, one JSON object a line. */
  log(): string;
  kill(signal?: NodeJS.Signals): void;
  /** Freezes it, as a paused machine would. */
  pause(): void;
  resume(): void;
  /** SIGTERM, and waits for the end. */
  stop(): Promise<void>;
  readonly exited: Promise<number | string>;
  readonly gone: boolean;
}

export interface StackOptions {
  /** Path of the application module. */
  app: string;
  orchestrators?: number;
  workers?: number;
  watchers?: number;
  env?: Record<string, string>;
  /** Where they run already; the stack ends them. */
  servers?: readonly TestNats[];
  /** Each service under its own NATS user, with the rights of its role. Default: `HOLDFAST_TEST_ROLES` is set. */
  roles?: boolean;
  /** A secured server that runs already, with its users. */
  secured?: SecuredNats;
}

const bin = fileURLToPath(new URL("../../../bin/holdfast.js", import.meta.url));

async function provision(
  secured: SecuredNats,
  names: Subjects,
  { HOLDFAST_PARTITIONS, HISTORY_SHARDS }: Record<string, string>,
): Promise<void> {
  const bus = await connectBus({ ...secured.connection("provisioner"), announce: silent });
  await ensureTopology(bus, names, {
    partitions: Number(HOLDFAST_PARTITIONS ?? defaultTopology.partitions),
    historyShards: Number(HISTORY_SHARDS ?? defaultTopology.historyShards),
    replicas: 1,
  });
  await bus.close();
}

export class Stack implements AsyncDisposable {
  readonly nats: TestNats;
  readonly bus: Bus;
  readonly names: Subjects;
  readonly client: Client;
  readonly processes: ServiceProcess[] = [];
  readonly #options: StackOptions;
  readonly #secured: SecuredNats | undefined;

  private constructor(
    nats: TestNats,
    bus: Bus,
    names: Subjects,
    options: StackOptions,
    secured: SecuredNats | undefined,
  ) {
    this.#secured = secured;
    this.nats = nats;
    this.bus = bus;
    this.names = names;
    this.client = new Client({ bus, names });
    this.#options = options;
  }

  static async start(options: StackOptions): Promise<Stack> {
    const names = subjects(options.env?.HOLDFAST_PREFIX ?? "");
    const secured =
      options.secured ??
      (options.servers === undefined && (options.roles ?? process.env.HOLDFAST_TEST_ROLES === "on")
        ? await startSecuredNats({ prefix: names.prefix, testerIsAnybody: true })
        : undefined);
    const servers = options.servers ?? [secured?.nats ?? (await startNats())];
    const [nats = await startNats()] = servers;
    if (secured) await provision(secured, names, options.env ?? {});
    const bus = await connectBus({
      ...secured?.tester,
      url: secured?.url ?? servers.map(({ url }) => url),
      name: "test",
      announce: silent,
      blobBucket: names.blobBucket,
    });
    const stack = new Stack(nats, bus, names, options, secured);
    try {
      const { orchestrators = 1, workers = 1, watchers = 1 } = options;
      await Promise.all([
        ...Array.from({ length: orchestrators }, () => stack.run("orchestrator")),
        ...Array.from({ length: workers }, () => stack.run("worker")),
        ...Array.from({ length: watchers }, () => stack.run("watcher")),
      ]);
    } catch (error) {
      await stack[Symbol.asyncDispose]();
      throw error;
    }
    return stack;
  }

  of(service: ServiceName): ServiceProcess[] {
    return this.processes.filter((process) => process.service === service);
  }

  /** What a process of this role needs to log in; nothing where roles are off. The command line is a gateway. */
  login(role: ServiceName): Record<string, string> {
    return this.#secured?.env(role) ?? {};
  }

  /** What orchestrators give workers with their tasks; nothing where roles are off. */
  get capabilities(): Capabilities {
    return this.#secured?.capabilities ?? noCapabilities;
  }

  /** Starts one more and waits until it is ready. */
  async run(
    service: ServiceName,
    env: Record<string, string> = {},
    ofBuild: string = bin,
  ): Promise<ServiceProcess> {
    const child = fork(ofBuild, [service, "--app", env.HOLDFAST_APP ?? this.#options.app], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: [],
      env: {
        PATH: process.env.PATH ?? "",
        HOME: process.env.HOME ?? "",
        LOG_LEVEL: "info",
        NATS_URL: this.#secured?.url ?? this.nats.url,
        ...this.#secured?.env(service),
        ...this.#options.env,
        ...env,
      },
    });
    const running = new Running(service, child);
    this.processes.push(running);
    await running.ready();
    return running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const process of this.processes) {
      process.resume();
      process.kill("SIGKILL");
    }
    await Promise.all(this.processes.map((process) => process.exited));
    await this.bus.close();
    const refused = this.#secured?.refused() ?? [];
    await Promise.all((this.#options.servers ?? [this.nats]).map((server) => server.stop()));
    // A role lacks a right, whether or not anybody noticed.
    if (refused.length > 0) {
      const message = `NATS refused: ${refused.join("; ")}`;
      console.error(message);
      throw new Error(message);
    }
  }
}

class Running implements ServiceProcess {
  readonly service: ServiceName;
  readonly pid: number;
  readonly exited: Promise<number | string>;
  readonly #child: ChildProcess;
  #log = "";
  #id = "";

  constructor(service: ServiceName, child: ChildProcess) {
    this.service = service;
    this.#child = child;
    this.pid = child.pid ?? 0;
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#log += chunk.toString();
    });
    this.exited = once(child, "exit").then(([code, signal]) => code ?? signal);
    keepLog({ service, pid: this.pid, log: () => this.#log, end: () => child.exitCode ?? child.signalCode });
  }

  get id(): string {
    return this.#id;
  }

  get gone(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async ready(): Promise<void> {
    const said = once(this.#child, "message").then(
      ([message]) => message as { ready?: boolean; id?: string },
    );
    const first = await Promise.race([said, this.exited]);
    if (typeof first !== "object" || !first.ready)
      throw new Error(`${this.service} ended with ${String(first)}: ${this.#log}`);
    this.#id = first.id ?? "";
  }

  log(): string {
    return this.#log;
  }

  kill(signal: NodeJS.Signals = "SIGKILL"): void {
    this.#child.kill(signal);
  }

  pause(): void {
    this.kill("SIGSTOP");
  }

  resume(): void {
    this.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    this.kill("SIGTERM");
    await this.exited;
  }
}

/** Waits for a fact. The check runs again and again; the message says what never became true. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 45_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
