/** HTTP, live view and dashboard as one service. Once started it stays up, whatever happens to NATS. */
import type { Registry } from "prom-client";
import { Pulse } from "../../schemas/index.ts";
import type { Bus, Stoppable, Subjects, TopologyOptions } from "../../shared/bus/index.ts";
import { startEndpoints } from "../../shared/endpoints/index.ts";
import { type Fleet, fleetView } from "../../shared/fleet/index.ts";
import type { HistoryStore } from "../../shared/history/index.ts";
import { announceFault, once, type Runtime, type Service, type Timer } from "../../shared/runtime/index.ts";
import type { Client } from "../../shared/sdk/index.ts";
import { Audit } from "./audit.ts";
import { type GatewayConfig, requireTokens } from "./config.ts";
import { GatewayGauges } from "./gauges.ts";
import { Histories } from "./histories.ts";
import { gatewayApp } from "./http/app.ts";
import { Origins } from "./http/guards.ts";
import type { GatewayListener } from "./http/port-listener.ts";
import type { Readiness } from "./http/probes.ts";
import { Broadcast } from "./live/broadcast.ts";
import { parseBody } from "./live/bucket-tail.ts";
import { Latencies } from "./live/latency.ts";
import { LiveView } from "./live/live-view.ts";
import { type Overview, overview } from "./live/overview.ts";
import { StreamWatch } from "./live/stream-watch.ts";
import type { GatewayParts } from "./routes/index.ts";
import { Access, IssuedTokens, Oidc, RateLimit, Tokens, TrustedProxies } from "./security/index.ts";

interface GatewayOptions {
  /** May be open already; from now on this gateway answers the requests. */
  listener: GatewayListener;
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  client: Client;
  history: HistoryStore;
  topology: TopologyOptions;
  config: GatewayConfig;
  version: string;
  /** The live processes, and the wire generation each can read. */
  fleet: Pick<Fleet, "members">;
  /** Folder of the built dashboard. */
  dashboardDir: string;
  /** Holds this process's metrics; the installation's metrics are added. */
  registry: Registry;
}

const overviewEveryMs = 1_000;
const pingEveryMs = 15_000;

export class Gateway implements Service {
  readonly #options: GatewayOptions;
  readonly #live: LiveView;
  readonly #streams: StreamWatch;
  readonly #latencies: Latencies;
  readonly #issuedTokens: IssuedTokens;
  readonly #broadcast = new Broadcast();
  readonly #parts: GatewayParts;
  readonly #gauges: GatewayGauges;
  readonly #timers = new Set<Timer>();
  #endpoints: Stoppable | undefined;
  #pulses: Stoppable | undefined;
  #awaySince: number | undefined;
  #unlisten: (() => void)[] = [];
  #stopping = false;

  constructor(options: GatewayOptions) {
    const { bus, names, runtime, config } = options;
    requireTokens(config.host, config.tokens.length > 0 || config.oidc !== undefined);
    this.#options = options;
    this.#live = new LiveView({ bus, names, runtime });
    this.#streams = new StreamWatch({ bus, names, topology: options.topology, clock: runtime.clock });
    this.#latencies = new Latencies(runtime.clock);
    this.#issuedTokens = new IssuedTokens(bus, names);
    this.#parts = {
      bus,
      names,
      client: options.client,
      histories: new Histories({
        ...{ bus, names, history: options.history, clock: runtime.clock },
        shards: options.topology.historyShards,
        maxBytes: config.maxHistoryBytes,
      }),
      live: this.#live,
      streams: this.#streams,
      audit: new Audit(bus, names, runtime.clock, { reads: config.auditReads }),
      issuedTokens: this.#issuedTokens,
      origins: new Origins(new TrustedProxies(config.trustedProxies), config.publicUrl),
      access: new Access({
        tokens: new Tokens(config.tokens, () => this.#issuedTokens.known()),
        oidc: config.oidc && new Oidc(config.oidc),
        payloadReaders: config.payloadReaders,
      }),
      wrongTokens: new RateLimit(runtime.clock, { perSecond: 0.2, burst: 10 }),
      config,
      runtime,
      version: options.version,
      overview: () => this.#overview(),
    };
    this.#gauges = new GatewayGauges(options.registry, {
      now: () => runtime.clock.now(),
      live: this.#live,
      broadcast: this.#broadcast,
      streams: () => this.#streams.latest,
      overview: () => this.#overview(),
    });
  }

  /** The address with the port that is actually bound. */
  get url(): string {
    return this.#options.listener.url;
  }

  async start(): Promise<void> {
    const { bus, names, client, listener, runtime, version } = this.#options;
    await this.#live.start();
    await this.#issuedTokens.start();
    this.#endpoints = await startEndpoints(bus, client, {
      names,
      runtime,
      version,
      orchestrations: () => this.#served(),
    });
    this.#pulses = await bus.subscribe(names.pulse, {}, (message) => {
      const pulse = parseBody(Pulse, message.body);
      if (pulse) this.#latencies.add(pulse);
    });
    this.#unlisten.push(
      this.#live.onBatch((batch) => this.#broadcast.batch(batch)),
      bus.onState((state) => this.#busChanged(state.kind)),
    );
    listener.serve(this.#app());
    await listener.start();
    this.#every(overviewEveryMs, () => this.#sendOverview());
    this.#every(pingEveryMs, () => this.#broadcast.ping());
  }

  stop = once(async () => {
    this.#stopping = true;
    for (const timer of this.#timers) timer.cancel();
    for (const unlisten of this.#unlisten) unlisten();
    this.#broadcast.close();
    await this.#options.listener.stop();
    await this.#endpoints?.stop();
    await this.#pulses?.stop();
    await this.#issuedTokens.stop();
    await this.#live.stop();
  });

  #app(): ReturnType<typeof gatewayApp> {
    const { dashboardDir, registry } = this.#options;
    return gatewayApp({
      parts: this.#parts,
      broadcast: this.#broadcast,
      dashboardDir,
      http: this.#gauges,
      metrics: async () => {
        await this.#gauges.fill();
        return registry.metrics();
      },
      ready: () => this.#ready(),
      generation: () => fleetView(this.#options.fleet.members()),
    });
  }

  /** Undefined while no orchestrator is known: one may be about to start. */
  #served(): string[] | undefined {
    const orchestrators = this.#live.services().filter((info) => info.orchestrations !== undefined);
    if (orchestrators.length === 0) return undefined;
    return orchestrators.flatMap((info) => Object.keys(info.orchestrations ?? {}));
  }

  #ready(): Readiness {
    if (this.#stopping) return { ready: false, why: "stopping" };
    return this.#options.bus.connected() ? { ready: true } : { ready: false, why: "NATS is away" };
  }

  async #overview(): Promise<Overview> {
    const { bus, runtime, topology } = this.#options;
    const connected = bus.connected();
    // A failed read of the streams must not hold up the page: it shows the latest known state.
    const streams = connected
      ? await this.#streams.view().catch(() => this.#streams.latest)
      : this.#streams.latest;
    return overview({
      now: runtime.clock.now(),
      bus: {
        connected,
        version: bus.serverVersion(),
        ...(this.#awaySince === undefined ? {} : { awaySince: this.#awaySince }),
      },
      live: this.#live,
      streams,
      latency: this.#latencies.view(),
      starts: this.#latencies.starts(),
      partitions: topology.partitions,
      fleet: fleetView(this.#options.fleet.members()),
    });
  }

  async #sendOverview(): Promise<void> {
    if (!this.#broadcast.wanted("overview")) return;
    const now = await this.#overview();
    this.#broadcast.send("overview", () => now);
  }

  #busChanged(kind: "connected" | "disconnected" | "reconnected"): void {
    this.#awaySince =
      kind === "disconnected" ? (this.#awaySince ?? this.#options.runtime.clock.now()) : undefined;
    void this.#sendOverview();
  }

  #every(ms: number, act: () => unknown): void {
    const timer = this.#options.runtime.clock.after(ms, async () => {
      this.#timers.delete(timer);
      try {
        await act();
      } catch (error) {
        announceFault(this.#options.runtime, "gateway", error, { code: "beat_failed" });
      }
      if (!this.#stopping) this.#every(ms, act);
    });
    this.#timers.add(timer);
  }
}
