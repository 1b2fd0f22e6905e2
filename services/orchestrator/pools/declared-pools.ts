/**
 * Sends each pool's declaration to its keeper when this orchestrator starts. A keeper ignores a declaration
 * it already has.
 */
import {
  lenderOrchestration,
  type PoolSignal,
  poolInstance,
  poolOrchestration,
  poolSignal,
} from "../../../schemas/index.ts";
import { type Bus, encode, publishOrThrow, type Subjects } from "../../../shared/bus/index.ts";
import type { App } from "../../../shared/definitions/index.ts";
import type { Generation } from "../../../shared/fleet/index.ts";
import { wantedPool } from "../../../shared/replay/index.ts";
import {
  announceFault,
  once,
  type Runtime,
  type Service,
  sleep,
  token,
} from "../../../shared/runtime/index.ts";

interface DeclaredPoolsParts {
  readonly id: string;
  readonly app: App;
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
  readonly generation: Pick<Generation, "allows">;
}

/**
 * Interval of retries until the server answers, and until no older process is alive that could not read the
 * signal.
 */
const againMs = 2_000;

export class DeclaredPools implements Service {
  readonly #parts: DeclaredPoolsParts;
  readonly #ended = new AbortController();
  #declaring: Promise<void> | undefined;

  constructor(parts: DeclaredPoolsParts) {
    this.#parts = parts;
  }

  /** `start` does not wait for the declarations: no other part needs a warm pool. */
  async start(): Promise<void> {
    if ((this.#parts.app.pools ?? []).length > 0) this.#declaring = this.#declareAll();
  }

  stop = once(async () => {
    this.#ended.abort();
    await this.#declaring;
  });

  async #declareAll(): Promise<void> {
    const { app, runtime, generation } = this.#parts;
    const { signal } = this.#ended;
    const left = [...(app.pools ?? [])];
    while (left.length > 0 && !signal.aborted) {
      const [pool] = left;
      try {
        if (pool && generation.allows(2)) {
          await this.#declare(pool);
          left.shift();
          continue;
        }
      } catch (error) {
        announceFault(runtime, `declaring pool ${pool?.type.name}`, error);
      }
      await sleep(runtime.clock, againMs, signal);
    }
  }

  async #declare({ type, options }: NonNullable<App["pools"]>[number]): Promise<void> {
    const { bus, names, runtime } = this.#parts;
    const { poolId, pool } = wantedPool(type, options);
    const { min, max, lingerMs, sharing } = pool;
    const keeper = poolInstance(poolId);
    const orchestration = sharing === "exclusive" ? lenderOrchestration : poolOrchestration;
    const subject = names.start(keeper, orchestration);
    // Under random ids: another client can have used those that can be guessed (SEC-2).
    const unique = token(runtime.random);
    await publishOrThrow(bus, { subject, body: encode({ poolId, pool }), msgId: `start-${unique}` });
    const signal: PoolSignal = { kind: "declare", min, max, lingerMs };
    await publishOrThrow(bus, {
      subject: names.signal(keeper, poolSignal),
      body: encode(signal),
      msgId: `declare-${unique}`,
    });
  }
}
