/**
 * Each orchestrator watches the next one in the circle of orchestrators that share the partitions. An
 * orchestrator that is proved dead (D1) loses its membership and its partitions at once instead of when its
 * leases run out. If it is alive after all, it notices when it renews; nothing is lost until then, because
 * correctness rests on the fenced append (T1, T4).
 */
import { LeaseValue } from "../../../schemas/index.ts";
import { Bucket, decode, leaseKeys } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { LeaseStore } from "../../../shared/leases/index.ts";
import { announceFault, once, type Timer } from "../../../shared/runtime/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { DeathProof } from "./proof.ts";

const defaultEveryMs = 100;
const removeWithinMs = 1_000;
/** Any instance id will do: the probe is not a report, and an orchestrator answers it with `elsewhere`. */
const anyInstance = "probe";

export class OrchestratorDeaths {
  readonly #deps: Pick<EngineDeps, "id" | "bus" | "names" | "runtime">;
  readonly #others: ReadonlySet<string>;
  readonly #proof: DeathProof;
  readonly #everyMs: number;
  #timer: Timer | undefined;
  #stopped = false;

  /** `others`: the orchestrators believed to be alive; a live set that the caller keeps up to date. */
  constructor(
    deps: Pick<EngineDeps, "id" | "bus" | "names" | "runtime">,
    others: ReadonlySet<string>,
    everyMs = defaultEveryMs,
  ) {
    this.#deps = deps;
    this.#others = others;
    this.#everyMs = everyMs;
    this.#proof = new DeathProof(deps.bus, deps.runtime.clock);
  }

  /** Starts watching if there is another orchestrator to watch. */
  follow(): void {
    if (this.#stopped || this.#timer || this.#others.size === 0) return;
    this.#timer = this.#deps.runtime.clock.after(this.#everyMs, async () => {
      await this.#look();
      this.#timer = undefined;
      this.follow();
    });
  }

  stop = once(async () => {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#proof.stop();
  });

  async #look(): Promise<void> {
    const next = this.#next();
    if (next === undefined) return;
    const subject = this.#deps.names.laneOfOwner(next, anyInstance, "report");
    try {
      const sign = await this.#proof.ask(subject);
      if (sign.kind !== "dead" || this.#stopped) return;
      await this.#release(next);
      this.#proof.forget(subject);
    } catch (error) {
      this.#complain(next, error);
    }
  }

  #next(): string | undefined {
    const others = [...this.#others].sort();
    return others.find((id) => id > this.#deps.id) ?? others[0];
  }

  /**
   * Every removal is fenced by the revision that was read: an orchestrator that renewed its lease meanwhile
   * is alive and keeps it.
   */
  async #release(id: string): Promise<void> {
    const { bus, names, runtime } = this.#deps;
    const bucket = names.engineBucket;
    const store = new LeaseStore(bus, bucket);
    const remove = async (key: string): Promise<boolean> => {
      const look = await store.look(key);
      if (look.kind !== "held" || look.holder !== id) return false;
      const write = { key, claimId: `dead-${id}`, expected: look.revision, timeoutMs: removeWithinMs };
      return (await store.remove(write)).kind === "stored";
    };
    // Remove the membership first, so that the other orchestrators compute their shares without this one.
    if (!(await remove(leaseKeys.member(id)))) return;
    const held: string[] = [];
    for await (const { key, value } of new Bucket(bus, bucket).entries(leaseKeys.allPartitions)) {
      const lease = decode(LeaseValue, value);
      if (lease.kind === "ok" && lease.value.holder === id) held.push(key);
    }
    const freed = await Promise.all(held.map(remove));
    runtime.announce({ kind: "orchestrator.died", id, partitions: freed.filter(Boolean).length });
  }

  #complain(id: string, error: unknown): void {
    if (isFault(error, "transient")) return; // the orchestrator is asked again, and its leases run out anyway
    announceFault(this.#deps.runtime, "orchestrator deaths", error, {
      otherwise: "probe_failed",
      about: `orchestrator ${id}`,
    });
  }
}
