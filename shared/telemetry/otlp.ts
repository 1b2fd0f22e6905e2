/**
 * Sends spans to a collector, for services whose settings name one. The packages for it are optional and
 * imported only here.
 */
import { context, trace } from "@opentelemetry/api";
import { Fault } from "../errors/index.ts";
import type { Clock } from "../runtime/index.ts";
import { ChosenIds } from "./trace-ids.ts";
import { Traces } from "./traces.ts";

export interface Exporting {
  traces: Traces;
  /** Sends the remaining spans. */
  stop(): Promise<void>;
}

export async function exportTraces(options: {
  endpoint: string;
  service: string;
  id: string;
  version: string;
  clock: Clock;
}): Promise<Exporting> {
  const { BasicTracerProvider, BatchSpanProcessor, OTLPTraceExporter, resourceFromAttributes, Manager } =
    await packages();
  const ids = new ChosenIds();
  const provider = new BasicTracerProvider({
    idGenerator: ids,
    resource: resourceFromAttributes({
      "service.name": `holdfast-${options.service}`,
      "service.instance.id": options.id,
      "service.version": options.version,
    }),
    spanProcessors: [
      new BatchSpanProcessor(new OTLPTraceExporter({ url: tracesUrl(options.endpoint) }), {
        scheduledDelayMillis: 1_000,
      }),
    ],
  });
  // For users' own spans inside activities and calls; the engine's own spans name their parent.
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new Manager().enable());
  const tracer = provider.getTracer("holdfast", options.version);
  return {
    traces: new Traces(tracer, ids, options.clock),
    stop: () => provider.shutdown().catch(() => undefined), // The collector may be unreachable.
  };
}

/** The variable holds the collector's address; the path for traces is OTLP's convention. */
const tracesUrl = (endpoint: string): string => `${endpoint.replace(/\/+$/, "")}/v1/traces`;

async function packages() {
  try {
    const [base, exporter, resources, hooks] = await Promise.all([
      import("@opentelemetry/sdk-trace-base"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/context-async-hooks"),
    ]);
    return {
      BasicTracerProvider: base.BasicTracerProvider,
      BatchSpanProcessor: base.BatchSpanProcessor,
      OTLPTraceExporter: exporter.OTLPTraceExporter,
      resourceFromAttributes: resources.resourceFromAttributes,
      Manager: hooks.AsyncLocalStorageContextManager,
    };
  } catch (cause) {
    throw new Fault("config", {
      code: "otel_missing",
      message: "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages that export traces are not installed",
      hint: "npm install @opentelemetry/sdk-trace-base @opentelemetry/exporter-trace-otlp-http @opentelemetry/context-async-hooks",
      cause,
    });
  }
}
