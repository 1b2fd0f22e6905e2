/** The warm keys of this worker and the models it loaded: hints for placement, shown to people too. */
import type { WorkerInfo } from "../../../../schemas/index.ts";
import type { Clock } from "../../../../shared/runtime/index.ts";
import type { ModelFacts } from "../../hosts/index.ts";
import type { HeldSession } from "../holding/held-session.ts";

/** How long a key counts as warm after the last session with it left. */
const cooledAfterMs = 600_000;
const mostKeys = 100;
const mostModels = 50;

export class WarmKeys {
  readonly #clock: Clock;
  /** How many sessions with the key are held. */
  readonly #held = new Map<string, number>();
  readonly #left = new Map<string, number>();
  readonly #models = new Map<string, ModelFacts>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  loaded(model: ModelFacts): void {
    this.#models.delete(model.name);
    this.#models.set(model.name, model);
    if (this.#models.size > mostModels) this.#models.delete([...this.#models.keys()][0] ?? "");
  }

  entered({ claim }: HeldSession): void {
    this.#held.set(claim.affinityKey, (this.#held.get(claim.affinityKey) ?? 0) + 1);
  }

  left({ claim }: HeldSession): void {
    const { affinityKey } = claim;
    const still = (this.#held.get(affinityKey) ?? 1) - 1;
    if (still > 0) this.#held.set(affinityKey, still);
    else this.#held.delete(affinityKey);
    this.#left.delete(affinityKey);
    this.#left.set(affinityKey, this.#clock.monotonic());
    if (this.#left.size > mostKeys) this.#left.delete([...this.#left.keys()][0] ?? "");
  }

  keys(): string[] {
    const now = this.#clock.monotonic();
    for (const [key, leftAt] of this.#left) if (now - leftAt > cooledAfterMs) this.#left.delete(key);
    return [...new Set([...this.#held.keys(), ...this.#left.keys()])];
  }

  models(): WorkerInfo["models"] {
    return [...this.#models.values()];
  }
}
