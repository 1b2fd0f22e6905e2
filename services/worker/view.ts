/** The workers alive, as the `workers` bucket tells it. Follows along; never asked over the wire. */
import { WorkerInfo } from "../../schemas/index.ts";
import { Bucket, type Stoppable, TypedBucket } from "../../shared/bus/index.ts";
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
    const { bus, names, runtime } = this.#deps;
    // What does not parse, of another version perhaps, is not to be placed on and not to be stumbled over.
    const bucket = new TypedBucket(new Bucket(bus, names.bucket("workers")), WorkerInfo, runtime.announce);
    let caughtUp: () => void = () => undefined;
    const known = new Promise<void>((resolve) => {
      caughtUp = resolve;
    });
    this.#watch = await bucket.watch(">", {
      onEntry: (event) => {
        this.#list = undefined;
        if (event.kind === "put") this.#byKey.set(event.key, event.value);
        else this.#byKey.delete(event.key);
      },
      onCaughtUp: caughtUp,
    });
    await known;
  }

  stop = once(async () => {
    await this.#watch?.stop();
  });
}
