/** Telemetry of one process: metrics for Prometheus, a pulse for the dashboard, spans for a collector. */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Bus, Subjects } from "../bus/index.ts";
import type { Announce, Clock } from "../runtime/index.ts";
import { instruments } from "./instruments.ts";
import { MetricsServer } from "./metrics-server.ts";
import { type Exporting, exportTraces } from "./otlp.ts";
import { PulseSender } from "./pulse.ts";
import { recorder } from "./record.ts";

interface TelemetryOptions {
  service: string;
  id: string;
  version: string;
  /** Port of `/metrics`; undefined: not served. 0 takes a free port. */
  metricsPort?: number | undefined;
  metricsHost?: string | undefined;
  /** Address of a trace collector; undefined: no spans are made. */
  tracesEndpoint?: string | undefined;
}

export class Telemetry {
  readonly registry = new Registry();
  readonly #options: TelemetryOptions;
  readonly #record: Announce;
  readonly #pulse: PulseSender;
  readonly #delay: IntervalHistogram;
  #server: MetricsServer | undefined;
  #exporting: Exporting | undefined;
  /** True once the service has started and until it is asked to stop. `/readyz` reports it. */
  serving = false;
  /** Fields of `/version` beside the version. */
  versionMore: () => Record<string, unknown> = () => ({});

  constructor(options: TelemetryOptions) {
    this.#options = options;
    this.#delay = monitorEventLoopDelay({ resolution: 20 });
    const metrics = instruments(this.registry, { eventLoopDelaySeconds: () => this.#popDelay() });
    collectDefaultMetrics({ register: this.registry });
    metrics.build.set({ version: options.version, service: options.service }, 1);
    this.#record = recorder(metrics);
    this.#pulse = new PulseSender(options.service, options.id);
  }

  readonly listen: Announce = (happening) => {
    this.#record(happening);
    this.#pulse.listen(happening);
    this.#exporting?.traces.listen(happening);
  };

  /** Port of the metrics server; undefined without one. */
  get port(): number | undefined {
    return this.#server?.port;
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  async start(bus: Bus, names: Subjects, clock: Clock): Promise<void> {
    this.#delay.enable();
    this.#pulse.attach(bus, names, clock);
    await this.#pulse.start();
    const { metricsPort, metricsHost = "127.0.0.1", version, tracesEndpoint } = this.#options;
    if (tracesEndpoint !== undefined) {
      this.#exporting = await exportTraces({ ...this.#options, endpoint: tracesEndpoint, clock });
    }
    if (metricsPort === undefined) return;
    this.#server = new MetricsServer({
      host: metricsHost,
      port: metricsPort,
      version,
      text: () => this.text(),
      ready: () => this.serving && bus.connected(),
      more: () => this.versionMore(),
    });
    await this.#server.start();
  }

  async stop(): Promise<void> {
    this.#delay.disable();
    await this.#pulse.stop();
    await this.#server?.stop();
    await this.#exporting?.stop();
  }

  #popDelay(): number {
    const nanoseconds = this.#delay.percentile(99);
    this.#delay.reset();
    return nanoseconds / 1e9;
  }
}
