/**
 * Drives the floor, the fastest possible implementation on bare NATS: streams, two or more processes, starts
 * from here and notices back to here, like the engine's client.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Msg } from "@nats-io/nats-core";
import { machineMs } from "../clock.ts";
import type { Pids } from "../costs/process-cost.ts";
import type { Layout } from "../options.ts";
import { inFlight } from "../stats.ts";
import { FloorLink } from "./link.ts";
import type { FloorEnd, FloorSettings, FloorStart } from "./protocol.ts";
import { createFloorStreams, deleteOwnStream, floorNames } from "./topology.ts";

interface FloorLoad {
  instances: number;
  /** Instances at a time. */
  inFlight: number;
  steps: number;
  /** Steps of one instance at a time. */
  width: number;
  /** See `FloorStart`. */
  direct?: boolean;
}

export interface FloorRun {
  wallMs: number;
  /** Start to notice, per instance. */
  latencies: number[];
  /** Times of the turns, one list for each instance. */
  stamps: number[][];
}

interface FloorSignals {
  /** Signal sent → received by the orchestrator. */
  received: number[];
  /** Signal sent → the task it leads to is with the worker. */
  worked: number[];
}

export class Floor {
  readonly #link: FloorLink;
  readonly #layout: Layout;
  readonly #processes: ChildProcess[];
  readonly #workers: number;
  readonly #natsPid: number;
  readonly #awaited = new Map<string, (message: Msg) => void>();
  readonly #leftOver: string[] = [];
  #runs = 0;

  private constructor(link: FloorLink, layout: Layout, processes: ChildProcess[], natsPid: number) {
    this.#link = link;
    this.#layout = layout;
    this.#workers = processes.length - 1;
    this.#natsPid = natsPid;
    this.#processes = processes;
    const callback = (_error: unknown, message: Msg) => this.#awaited.get(message.subject)?.(message);
    link.nc.subscribe(floorNames.notice("*"), { callback });
    link.nc.subscribe(floorNames.waiting("*"), { callback });
  }

  static async start(nats: { url: string; pid: number }, layout: Layout, workers = 1): Promise<Floor> {
    const { url } = nats;
    const link = await FloorLink.connect(url, "floor-client");
    await createFloorStreams(link, workers);
    const settings = { url, layout };
    const processes = await Promise.all([
      startProcess("orchestrator", { ...settings, worker: 0 }),
      ...Array.from({ length: workers }, (_, worker) => startProcess("worker", { ...settings, worker })),
    ]);
    return new Floor(link, layout, processes, nats.pid);
  }

  /** The processes at work; the client's part is in this one. */
  get pids(): Pids {
    const [orchestrator, worker] = this.#processes.map((child) => child.pid ?? 0);
    return { client: process.pid, orchestrator: orchestrator ?? 0, worker: worker ?? 0, nats: this.#natsPid };
  }

  async run({ instances, inFlight: lanes, steps, width, direct = false }: FloorLoad): Promise<FloorRun> {
    const run = this.#runs++;
    const startedAt = machineMs();
    const ends = await inFlight(instances, lanes, async (index) => {
      const id = `r${run}i${index}`;
      const begun = machineMs();
      const ended = this.#until(floorNames.notice(id));
      await this.#start(id, { steps, width, direct, worker: index % this.#workers, waits: false });
      const { stamps } = (await ended).json<FloorEnd>();
      return { ms: machineMs() - begun, stamps };
    });
    const wallMs = machineMs() - startedAt;
    this.#leaves(run, instances);
    return { wallMs, latencies: ends.map((end) => end.ms), stamps: ends.map((end) => end.stamps) };
  }

  /** Instances that wait and are resumed one at a time. */
  async signals(rounds: number): Promise<FloorSignals> {
    const run = this.#runs++;
    await inFlight(rounds, 32, async (index) => {
      const waiting = this.#until(floorNames.waiting(`r${run}i${index}`));
      await this.#start(`r${run}i${index}`, { steps: 1, width: 1, direct: false, worker: 0, waits: true });
      await waiting;
    });
    const received: number[] = [];
    const worked: number[] = [];
    for (let index = 0; index < rounds; index++) {
      const id = `r${run}i${index}`;
      const ended = this.#until(floorNames.notice(id));
      const sentAt = machineMs();
      await this.#link.store(floorNames.signal(id), "null", { "Nats-Msg-Id": `signal-${id}` });
      const end = (await ended).json<FloorEnd>();
      received.push(end.signalAt - sentAt);
      worked.push((end.stamps[0] ?? Number.NaN) - sentAt);
    }
    this.#leaves(run, rounds);
    return { received, worked };
  }

  async #start(id: string, start: FloorStart): Promise<void> {
    await this.#link.store(floorNames.start(id), JSON.stringify(start), { "Nats-Msg-Id": `start-${id}` });
  }

  #until(subject: string): Promise<Msg> {
    return new Promise((resolve) => {
      this.#awaited.set(subject, (message) => {
        this.#awaited.delete(subject);
        resolve(message);
      });
    });
  }

  /** Time of single publishes to a stream, one after the other, each as large as a commit. */
  async appends(n: number): Promise<number[]> {
    const subject = floorNames.history("appends", "shared");
    const body = "x".repeat(400);
    const times: number[] = [];
    for (let index = 0; index < n; index++) {
      const begun = machineMs();
      await this.#link.store(subject, body);
      times.push(machineMs() - begun);
    }
    return times;
  }

  /** Streams per instance would weigh on what is measured next; removing them must not count as work of the floor. */
  async cleanUp(): Promise<void> {
    const ids = this.#leftOver.splice(0);
    await inFlight(ids.length, 32, (index) => deleteOwnStream(this.#link, ids[index] ?? ""));
  }

  #leaves(run: number, instances: number): void {
    if (this.#layout === "shared") return;
    for (let index = 0; index < instances; index++) this.#leftOver.push(`r${run}i${index}`);
  }

  /** Its streams go with the server. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#processes.map((child) => {
        child.kill("SIGKILL");
        return child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
      }),
    );
    await this.#link.nc.close();
  }
}

async function startProcess(name: string, settings: FloorSettings): Promise<ChildProcess> {
  const entry = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const child = fork(entry, [JSON.stringify(settings)]);
  const died = once(child, "exit").then(([code]) => {
    throw new Error(`the floor's ${name} ended with ${code}`);
  });
  await Promise.race([once(child, "message"), died]);
  died.catch(() => undefined); // from here on it ends when it is stopped
  return child;
}
