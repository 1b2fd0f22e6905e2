/** One server on a temporary folder and the services a workload needs, each a process of its own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "holdfast";
import { pickFreePort } from "../shared/embedded-nats/free-port.ts";
import { type EmbeddedNats, startEmbeddedNats } from "../shared/embedded-nats/index.ts";
import type { Pids } from "./costs/process-cost.ts";
import type { BenchOptions, Layout } from "./options.ts";
import { provision, type Safety, safeguards } from "./roles.ts";
import { type ServiceName, ServiceProcess } from "./service.ts";

interface RigSpec {
  layout: Layout;
  /** Module in the folder `app`. */
  app?: "app" | "inference";
  workers?: number;
  watcher?: boolean;
  /** Arguments of node itself. */
  orchestratorArgv?: string[];
  workerArgv?: string[];
  /** Variables for all services. */
  env?: Record<string, string>;
  /** Default: everything if `HOLDFAST_TEST_ROLES` is set, else off. */
  safety?: Safety;
}

/** Gives every instance a stream of its own in workloads with more instances than the default limit allows. */
export const alwaysOwnStreams = { HISTORY_MAX_STREAMS: "10000" };

const appFile = (name = "app"): string => fileURLToPath(new URL(`./app/${name}.ts`, import.meta.url));

interface Addresses {
  monitor: string;
  profiles: string;
}

export class Rig {
  readonly layout: Layout;
  readonly nats: EmbeddedNats;
  readonly client: Client;
  readonly workers: ServiceProcess[] = [];
  orchestrator: ServiceProcess | undefined;
  /** Address of the server's HTTP monitoring. */
  readonly monitor: string;
  /** Address of the server's own profiles. */
  readonly profiles: string;
  /** Removed when the rig stops. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly #services: ServiceProcess[] = [];
  readonly #byNode = new Map<string, ServiceProcess>();
  #started = 0;
  /** With roles on, each service logs in as its own user. */
  #envOf: (role: string) => Record<string, string> = () => ({});
  static readonly #open = new Set<Rig>();

  private constructor(folder: string, nats: EmbeddedNats, at: Addresses, client: Client, spec: RigSpec) {
    this.layout = spec.layout;
    this.nats = nats;
    this.monitor = `http://${at.monitor}`;
    this.profiles = `http://${at.profiles}`;
    this.client = client;
    this.folder = folder;
    this.env = {
      NATS_URL: nats.url,
      HISTORY_LAYOUT: spec.layout,
      HOLDFAST_APP: appFile(spec.app),
      ...spec.env,
    };
    Rig.#open.add(this);
  }

  /** Stops all rigs that workloads have left running. */
  static async stopAll(): Promise<void> {
    await Promise.all([...Rig.#open].map((rig) => rig.stop()));
  }

  /** A server and a client; no service yet. */
  static async open({ sync }: Pick<BenchOptions, "sync">, spec: RigSpec): Promise<Rig> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
    const { safety = process.env.HOLDFAST_TEST_ROLES === "on" ? "everything" : "off" } = spec;
    const { config, envOf } = safeguards(folder, safety);
    const [monitorPort, profilePort] = [await pickFreePort(), await pickFreePort()];
    const monitor = `127.0.0.1:${monitorPort}`;
    const nats = await startEmbeddedNats({
      dataDir: folder,
      syncAlways: sync === "always",
      extraConfig: `http: "${monitor}"\nprof_port: ${profilePort}\n${config}`,
    });
    if (safety !== "off") await provision(nats.url);
    const rig = new Rig(
      folder,
      nats,
      { monitor, profiles: `127.0.0.1:${profilePort}` },
      await Client.connect({ url: nats.url, name: "bench" }),
      spec,
    );
    rig.#envOf = envOf;
    return rig;
  }

  static async start(options: BenchOptions, spec: RigSpec): Promise<Rig> {
    const rig = await Rig.open(options, spec);
    try {
      const profiled = options.cpuProf ? ["--cpu-prof", `--cpu-prof-dir=${options.cpuProf}`] : [];
      const starting: Promise<unknown>[] = [
        rig.startOrchestrator([...profiled, ...(spec.orchestratorArgv ?? [])]),
        ...Array.from({ length: spec.workers ?? 1 }, () =>
          rig.startWorker({}, [...profiled, ...(spec.workerArgv ?? [])]),
        ),
      ];
      if (spec.watcher) starting.push(rig.startService("watcher"));
      await Promise.all(starting);
      return rig;
    } catch (error) {
      await rig.stop();
      throw error;
    }
  }

  /** Bytes of the server's heap in use, after garbage collections: its pools keep unused buffers through the first. */
  async natsHeapBytes(): Promise<number> {
    await (await fetch(`${this.profiles}/debug/pprof/heap?gc=1`)).arrayBuffer();
    const text = await (await fetch(`${this.profiles}/debug/pprof/heap?gc=1&debug=1`)).text();
    return Number(/^# HeapInuse = (\d+)$/m.exec(text)?.[1]);
  }

  /** The processes at work; the client's part is in this one. */
  get pids(): Pids {
    const pids: Pids = { client: process.pid, nats: this.nats.pid };
    if (this.orchestrator) pids.orchestrator = this.orchestrator.pid;
    if (this.workers[0]) pids.worker = this.workers[0].pid;
    return pids;
  }

  async startOrchestrator(execArgv: string[] = []): Promise<ServiceProcess> {
    this.orchestrator = await this.startService("orchestrator", {}, execArgv);
    return this.orchestrator;
  }

  async startWorker(env: Record<string, string> = {}, execArgv: string[] = []): Promise<ServiceProcess> {
    const nodeId = `bench-${this.#started++}`;
    const worker = await this.startService("worker", { WORKER_NODE_ID: nodeId, ...env }, execArgv);
    this.workers.push(worker);
    this.#byNode.set(nodeId, worker);
    return worker;
  }

  /** SIGKILL to the worker of that id, which begins with its node's. */
  async killWorker(workerId: string): Promise<void> {
    const nodeId = [...this.#byNode.keys()].find((id) => workerId.startsWith(`${id}-`));
    const worker = this.#byNode.get(nodeId ?? "");
    if (!worker || nodeId === undefined) throw new Error(`there is no worker ${workerId}`);
    this.#byNode.delete(nodeId);
    await worker.end("SIGKILL");
  }

  async startService(
    service: ServiceName,
    env: Record<string, string> = {},
    execArgv: string[] = [],
  ): Promise<ServiceProcess> {
    const logFile = join(this.folder, `${service}.log`);
    const started = await ServiceProcess.start({
      service,
      logFile,
      execArgv,
      env: { ...this.env, ...this.#envOf(service), ...env },
    });
    this.#services.push(started);
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async stop(): Promise<void> {
    if (!Rig.#open.delete(this)) return;
    await Promise.all(this.#services.map((service) => service.end("SIGTERM")));
    await this.client.close();
    await this.nats.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}
