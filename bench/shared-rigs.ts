/**
 * Servers and services that several workloads use one after the other; each is started when the first
 * workload needs it.
 */
import { Floor } from "./floor/floor.ts";
import type { BenchOptions, Layout } from "./options.ts";
import { alwaysOwnStreams, Rig } from "./rig.ts";

const sessionWorkers = 2;

export class SharedRigs {
  readonly #options: BenchOptions;
  readonly #layout: Layout;
  #rig: Promise<Rig> | undefined;
  #floor: Promise<Floor> | undefined;
  #sessionRig: Promise<Rig> | undefined;
  #sessionFloor: Promise<Floor> | undefined;

  constructor(options: BenchOptions, layout: Layout) {
    this.#options = options;
    this.#layout = layout;
  }

  rig = (): Promise<Rig> =>
    (this.#rig ??= Rig.start(this.#options, { layout: this.#layout, env: alwaysOwnStreams }));

  floor = (): Promise<Floor> =>
    (this.#floor ??= this.rig().then((rig) => Floor.start(rig.nats, this.#layout)));

  sessionRig = (): Promise<Rig> =>
    (this.#sessionRig ??= Rig.start(this.#options, {
      layout: this.#layout,
      workers: sessionWorkers,
      watcher: true,
      env: { WORKER_MAX_SESSIONS: "250", WORKER_CALL_SLOTS: "250" },
    }));

  sessionFloor = (): Promise<Floor> =>
    (this.#sessionFloor ??= this.sessionRig().then((rig) =>
      Floor.start(rig.nats, this.#layout, sessionWorkers),
    ));

  /** Later requests get new ones. */
  async stop(): Promise<void> {
    const started = [this.#floor, this.#sessionFloor, this.#rig, this.#sessionRig];
    this.#floor = this.#sessionFloor = this.#rig = this.#sessionRig = undefined;
    for (const thing of started) {
      // A rig that failed to start has rejected the workload's own request already.
      const stoppable = await thing?.catch(() => undefined);
      await stoppable?.stop();
    }
  }
}
