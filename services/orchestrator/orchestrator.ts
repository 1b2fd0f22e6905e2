/** One orchestrator process: runs the orchestrations of its partitions. */
import { z } from "zod";
import { InstanceSummary, type ServiceInfo, SessionRecord } from "../../schemas/index.ts";
import {
  Bucket,
  type Bus,
  Payloads,
  ServerClock,
  type Subjects,
  TypedBucket,
} from "../../shared/bus/index.ts";
import { type Capabilities, noCapabilities } from "../../shared/capabilities/index.ts";
import type { AnyOrchestration, App } from "../../shared/definitions/index.ts";
import { everythingAllowed, type Generation } from "../../shared/fleet/index.ts";
import { HistoryStore } from "../../shared/history/index.ts";
import type { Leases } from "../../shared/leases/index.ts";
import { type InstanceHost, installGuards } from "../../shared/replay/index.ts";
import { once, type Runtime, type Service, startAll } from "../../shared/runtime/index.ts";
import { LiveWorkers, placeWithinQuotas } from "../../shared/sessions/index.ts";
import { packageVersion } from "../version.ts";
import { StreamChecks } from "./capabilities/stream-checks.ts";
import { type DeadWorker, WorkerDeaths } from "./deaths/worker-deaths.ts";
import type { OrchestratorDeps } from "./deps.ts";
import { type FaultPoints, noFaults } from "./fault-points.ts";
import { flowKeeper, leftOut } from "./flow/flow-keeper.ts";
import { HeldStarts } from "./flow/held-starts.ts";
import { KeeperMessages } from "./flow/keeper-messages.ts";
import { KeyedEndpoint } from "./keyed/keyed-endpoint.ts";
import { keyedKeeper } from "./keyed/keyed-keeper.ts";
import { ClaimPasses } from "./lane/claim-passes.ts";
import { Lane } from "./lane/lane.ts";
import { InstanceCache } from "./partitions/partition-instances.ts";
import { Partitions } from "./partitions/partitions.ts";
import { DeclaredPools } from "./pools/declared-pools.ts";
import { poolCall } from "./pools/pool-call.ts";
import { poolKeeper } from "./pools/pool-keeper.ts";
import { poolLender } from "./pools/pool-lender.ts";
import { LateSummaries } from "./publishing/late-summaries.ts";
import { LongLived } from "./publishing/long-lived.ts";
import { claimFacts } from "./publishing/session-register.ts";
import { ParkedList } from "./quarantine/parked-list.ts";
import { Runaways, type RunawaysOptions } from "./quarantine/runaways.ts";
import { Queries } from "./queries/queries.ts";
import { scheduleKeeper } from "./schedules/schedule-keeper.ts";
import { TurnSlots } from "./turn-slots.ts";

export interface OrchestratorOptions {
  id: string;
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  app: App;
  partitions: number;
  history: {
    layout: "per-instance" | "shared";
    maxOwnStreams: number;
    /** How long an instance runs before it gets a stream of its own; 0: from its first commit. */
    ownAfterMs: number;
    shards: number;
  };
  replicas: number;
  /** The orchestrator starts and stops the lease keeper. */
  leases: Leases & Service;
  /** How many idle instances are kept in memory. */
  cacheSize: number;
  alwaysReplay?: boolean;
  /** Whether tasks may go straight to live workers. Default: true. */
  lane?: boolean;
  inlineBytes?: number;
  /** An execution fails when its history has this many events. */
  historyLimit?: number;
  /** Unacknowledged messages per partition; for tests. */
  maxUnacknowledged?: number | undefined;
  /** How often the next orchestrator is asked whether it lives; for simulations, which pay for each question. */
  deathProbeMs?: number | undefined;
  /** Checks the capabilities that workers send with their reports (C1). Default: accepts every report. */
  capabilities?: Capabilities | undefined;
  /** Which generation may be written now (E1). Default: the newest. */
  generation?: Pick<Generation, "allows" | "heldBackBy">;
  faultPoints?: FaultPoints | undefined;
  /** Watches for turns that do not end. Undefined: no watchdog. */
  watchdog?: RunawaysOptions;
}

/** Messages per partition; with sixteen partitions a process holds a few thousand messages at most. */
const maxMessages = 256;
const maxUnacknowledged = 20_000;

export class Orchestrator implements Service {
  readonly #options: OrchestratorOptions;
  readonly #time: ServerClock;
  readonly #workers: LiveWorkers;
  readonly #leases: Leases & Service;
  readonly #partitions: Partitions;
  readonly #lane: Lane;
  readonly #keepers: KeeperMessages;
  readonly #heldStarts: HeldStarts;
  readonly #deaths: WorkerDeaths;
  readonly #runaways: Runaways;
  readonly #queries: Queries;
  readonly #keyed: KeyedEndpoint;
  readonly #declared: DeclaredPools;
  readonly #streamChecks: StreamChecks | undefined;
  readonly #claimPasses: ClaimPasses;

  constructor(options: OrchestratorOptions) {
    this.#options = options;
    const { bus, names, id, capabilities = noCapabilities } = options;
    this.#time = new ServerClock({ bus, stream: names.timersStream, runtime: options.runtime });
    const runtime: Runtime = { ...options.runtime, clock: this.#time };
    const app = withKeepers(options.app);
    this.#workers = new LiveWorkers({ bus, names, runtime });
    this.#leases = options.leases;
    this.#runaways = new Runaways({ bus, names }, options.watchdog ?? { build: "", mark: undefined });
    const enabled = options.lane ?? true;
    const workSent = () => this.#deaths.stir();
    const generation = options.generation ?? everythingAllowed;
    this.#lane = new Lane(
      { id, bus, names, runtime, enabled, generation, capabilities, workers: this.#workers, workSent },
      (instanceId) => this.#partitions.find(instanceId),
    );
    const onDead = (dead: DeadWorker) => this.#lane.died(dead);
    this.#deaths = new WorkerDeaths({ bus, names, runtime, workers: this.#workers, onDead });
    const inlineBytes = options.inlineBytes ?? 256 * 1024;
    const payloads = new Payloads(bus.blobs, { inlineBytes });
    this.#keepers = new KeeperMessages({
      ...{ id, bus, names, runtime },
      partitionOf: (keeper) => this.#partitions.partitionOf(keeper),
      onDecision: (decision) => this.#heldStarts.onDecision(decision),
    });
    this.#heldStarts = new HeldStarts({
      ...{ id, bus, names, runtime, payloads },
      ask: (keeper, ask) => this.#keepers.ask(keeper, ask),
    });
    const deps: OrchestratorDeps = {
      id,
      bus,
      names,
      runtime,
      time: this.#time,
      app,
      payloads,
      history: new HistoryStore({ ...options.history, bus, names, replicas: options.replicas, runtime }),
      workers: this.#workers,
      host: this.#host(app, payloads, inlineBytes),
      registers: {
        instances: new TypedBucket(
          new Bucket(bus, names.bucket("instances")),
          InstanceSummary,
          runtime.announce,
        ),
        sessions: new TypedBucket(new Bucket(bus, names.bucket("sessions")), SessionRecord, runtime.announce),
      },
      generation,
      capabilities,
      workSent,
      parked: new ParkedList({ bus, names, runtime, capabilities }),
      runaways: this.#runaways,
      lane: this.#lane,
      keepers: this.#keepers,
      heldStarts: this.#heldStarts,
      lateSummaries: new LateSummaries(runtime.clock),
      longLived: new LongLived(runtime.clock, options.history.ownAfterMs),
      turns: new TurnSlots(runtime.clock),
      faultPoints: options.faultPoints ?? noFaults,
    };
    this.#partitions = new Partitions(deps, {
      count: options.partitions,
      leases: this.#leases,
      cache: new InstanceCache(options.cacheSize),
      alwaysReplay: options.alwaysReplay ?? false,
      maxMessages,
      maxUnacknowledged: options.maxUnacknowledged ?? maxUnacknowledged,
      deathProbeMs: options.deathProbeMs,
    });
    this.#queries = new Queries({
      bus,
      names,
      runtime,
      version: packageVersion(),
      partitionOf: (instanceId) => this.#partitions.partitionOf(instanceId),
    });
    this.#claimPasses = new ClaimPasses({ bus, names, runtime, capabilities, generation });
    if (options.capabilities) this.#streamChecks = new StreamChecks({ bus, names, runtime, capabilities });
    this.#declared = new DeclaredPools({
      ...{ id, bus, names, runtime, app: options.app },
      generation,
    });
    this.#keyed = new KeyedEndpoint({
      ...{ bus, names, runtime, payloads, app: options.app, version: packageVersion() },
      ...{ sessions: deps.registers.sessions, capabilities },
      generation,
    });
  }

  #host(app: App, payloads: Payloads, inlineBytes: number): InstanceHost {
    const { runtime, generation = everythingAllowed } = this.#options;
    return {
      app,
      heldBackBy: (wanted) =>
        generation.allows(wanted)
          ? undefined
          : generation
              .heldBackBy()
              .map(({ kind, id }) => `${kind} ${id}`)
              .join(", ") || "an older process",
      generation,
      payloads: {
        inlineBytes,
        store: (json, owner) => payloads.wrapText(json, owner),
        fetch: (payload) => payloads.unwrap(payload),
      },
      historyLimit: this.#options.historyLimit,
      placement: {
        whyUnclaimed: (session) => {
          const placed = placeWithinQuotas(this.#workers.workers(), claimFacts(session));
          return placed.kind === "none"
            ? placed.message
            : `worker ${placed.workerId} has room but did not take it in time`;
        },
      },
      log: (instanceId, level, message, fields) =>
        runtime.announce({ kind: "orchestration.log", instanceId, level, message, fields }),
    };
  }

  async start(): Promise<void> {
    installGuards();
    await startAll([this.#time, this.#workers, this.#deaths, this.#runaways, this.#leases]);
    await startAll([
      this.#lane,
      this.#keepers,
      this.#heldStarts,
      this.#queries,
      this.#streamChecks,
      this.#claimPasses,
      this.#keyed,
      this.#declared,
    ]);
    await this.#partitions.start();
  }

  stop = once(async () => {
    await this.#declared.stop();
    await this.#keyed.stop();
    await this.#queries.stop();
    await this.#claimPasses.stop();
    await this.#streamChecks?.stop();
    await this.#partitions.stop();
    await this.#heldStarts.stop();
    await this.#keepers.stop();
    await this.#lane.stop();
    await this.#leases.stop();
    await this.#deaths.stop();
    await this.#workers.stop();
    await this.#runaways.stop();
    await this.#time.stop();
  });

  get partitions(): number[] {
    return this.#partitions.held;
  }

  describe = (): Pick<ServiceInfo, "partitions" | "orchestrations" | "sessionTypes" | "counters"> => ({
    partitions: this.#partitions.held,
    orchestrations: Object.fromEntries(
      [...this.#options.app.orchestrations.values()].map((definition) => [
        definition.name,
        inputSchema(definition),
      ]),
    ),
    sessionTypes: [...this.#options.app.sessions.keys()],
    counters: { instances: this.#partitions.instances },
  });
}

/** JSON Schema of the input if its validator is zod; other validators have no common way to export one. */
function inputSchema(definition: AnyOrchestration): unknown {
  if (!(definition.input instanceof z.ZodType)) return null;
  try {
    return z.toJSONSchema(definition.input, { io: "input", unrepresentable: "any" });
  } catch {
    return null; // a form without fields is better than no orchestrator
  }
}

/** Adds the engine's own orchestrations to the user's application. */
function withKeepers(app: App): App {
  const keepers = [
    poolKeeper(app),
    poolLender(app),
    poolCall(app),
    keyedKeeper(app),
    scheduleKeeper,
    flowKeeper,
    leftOut,
  ].map((keeper) => [keeper.name, keeper] as const);
  return { ...app, orchestrations: new Map<string, AnyOrchestration>([...app.orchestrations, ...keepers]) };
}
