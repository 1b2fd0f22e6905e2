/**
 * The living workers according to the `workers` bucket. It follows the bucket, so reading it sends no
 * request.
 */
import { WorkerInfo } from "../../schemas/index.ts";
import { Bucket, type Bus, type Stoppable, type Subjects, TypedBucket } from "../bus/index.ts";
import { once, type Runtime, type Service } from "../runtime/index.ts";

type WorkerChange = { kind: "present" | "gone"; info: WorkerInfo };

export class LiveWorkers implements Service {
  readonly #bucket: TypedBucket<WorkerInfo>;
  readonly #byKey = new Map<string, WorkerInfo>();
  readonly #revisions = new Map<string, number>();
  readonly #listeners = new Set<(change: WorkerChange) => void>();
  #list: readonly WorkerInfo[] | undefined;
  #watch: Stoppable | undefined;

  constructor({ bus, names, runtime }: { bus: Bus; names: Subjects; runtime: Pick<Runtime, "announce"> }) {
    // An entry that does not parse, perhaps of another version, is skipped: no session is placed on that
    // worker.
    this.#bucket = new TypedBucket(new Bucket(bus, names.bucket("workers")), WorkerInfo, runtime.announce);
  }

  workers(): readonly WorkerInfo[] {
    return (this.#list ??= [...this.#byKey.values()]);
  }

  /** The revision of the worker's entry. */
  revision(workerId: string): number | undefined {
    return this.#revisions.get(workerId);
  }

  onChange(listener: (change: WorkerChange) => void): void {
    this.#listeners.add(listener);
  }

  /** Resolves when every entry written so far is known. */
  async start(): Promise<void> {
    let caughtUp: () => void = () => undefined;
    const known = new Promise<void>((resolve) => {
      caughtUp = resolve;
    });
    this.#watch = await this.#bucket.watch(">", {
      onEntry: (event) => {
        this.#list = undefined;
        const info = event.kind === "put" ? event.value : this.#byKey.get(event.key);
        if (event.kind === "put") {
          this.#byKey.set(event.key, event.value);
          this.#revisions.set(event.key, event.revision);
        } else {
          this.#byKey.delete(event.key);
          this.#revisions.delete(event.key);
        }
        const kind = event.kind === "put" ? "present" : "gone";
        if (info) for (const listener of this.#listeners) listener({ kind, info });
      },
      onCaughtUp: caughtUp,
    });
    await known;
  }

  stop = once(async () => {
    await this.#watch?.stop();
  });
}
