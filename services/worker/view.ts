/** The workers alive, as the `workers` bucket tells it. Follows along; never asked over the wire. */
import { WorkerInfo } from "../../schemas/index.ts";
import { Bucket, type BucketEvent, decode, type Stoppable } from "../../shared/bus/index.ts";
import { once, type Service } from "../../shared/runtime/index.ts";
import type { WorkerDeps, WorkersView } from "./deps.ts";

export class LiveWorkers implements WorkersView, Service {
  readonly #deps: Pick<WorkerDeps, "bus" | "names" | "runtime">;
  readonly #byKey = new Map<string, WorkerInfo>();
  #list: readonly WorkerInfo[] | undefined;
  #watch: Stoppable | undefined;

  constructor(deps: Pick<WorkerDeps, "bus" | "names" | "runtime">) {
    this.#deps = deps;
  }

  workers(): readonly WorkerInfo[] {
    return (this.#list ??= [...this.#byKey.values()]);
  }

  /** Resolves when everything registered so far is known. */
  async start(): Promise<void> {
    const { bus, names } = this.#deps;
    const bucket = new Bucket(bus, names.bucket("workers"));
    await new Promise<void>((resolve, reject) => {
      bucket.watch(">", { onEntry: (event) => this.#apply(event), onCaughtUp: resolve }).then((watch) => {
        this.#watch = watch;
      }, reject);
    });
  }

  stop = once(async () => {
    await this.#watch?.stop();
  });

  #apply(event: BucketEvent): void {
    this.#list = undefined;
    if (event.kind !== "put") {
      this.#byKey.delete(event.key);
      return;
    }
    const info = decode(WorkerInfo, event.value);
    if (info.kind === "ok") {
      this.#byKey.set(event.key, info.value);
      return;
    }
    // Of another version, or not ours: not to be placed on, and not to be stumbled over.
    this.#byKey.delete(event.key);
    const message = `worker ${event.key} is registered in a way not understood: ${info.message}`;
    this.#deps.runtime.announce({ kind: "fault", where: "worker.view", code: "bad_worker_info", message });
  }
}
