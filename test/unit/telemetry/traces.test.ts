import { context, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../shared/runtime/index.ts";
import { derivedTrace, formatTraceparent, parseTraceparent } from "../../../shared/runtime/trace.ts";
import { ChosenIds } from "../../../shared/telemetry/trace-ids.ts";
import { Traces } from "../../../shared/telemetry/traces.ts";

function rig() {
  const ids = new ChosenIds();
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    idGenerator: ids,
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  const traces = new Traces(provider.getTracer("test"), ids, systemClock);
  return { traces, spans: () => exporter.getFinishedSpans() };
}

const closed = {
  kind: "instance.closed",
  instanceId: "i-1",
  name: "greet",
  status: "completed",
  durationMs: 1500,
} as const;
const ran = {
  kind: "activity.ended",
  instanceId: "i-1",
  name: "hello",
  of: 2,
  attempt: 1,
  outcome: "failed",
  ms: 40,
} as const;

describe("traces", () => {
  it("make one trace of an instance nobody traced, in whatever process its parts ran", () => {
    const orchestrator = rig();
    const worker = rig();
    worker.traces.listen(ran);
    worker.traces.listen({
      kind: "call.ended",
      sessionId: "s",
      type: "ml",
      name: "classify",
      of: 3,
      epoch: 7,
      outcome: "completed",
      ms: 5,
      instanceId: "i-1",
    });
    orchestrator.traces.listen(closed);
    const [root] = orchestrator.spans();
    const expected = derivedTrace("i-1");
    expect(root?.spanContext()).toMatchObject({ traceId: expected.traceId, spanId: expected.spanId });
    expect(root?.parentSpanContext).toBeUndefined();
    expect(worker.spans().map(({ name }) => name)).toEqual(["activity hello", "call ml.classify"]);
    for (const span of worker.spans()) {
      expect(span.spanContext().traceId).toBe(expected.traceId);
      expect(span.parentSpanContext?.spanId).toBe(expected.spanId);
    }
    expect(worker.spans()[0]?.status).toMatchObject({ message: "failed" });
  });

  it("go on in the trace of whoever started it", () => {
    const { traces, spans } = rig();
    const sent = { traceId: "a".repeat(32), spanId: "b".repeat(16), traceFlags: 1 };
    const traceparent = formatTraceparent(sent);
    traces.listen({ ...closed, traceparent });
    traces.listen({ ...ran, traceparent });
    for (const span of spans()) {
      expect(span.spanContext().traceId).toBe(sent.traceId);
      expect(span.parentSpanContext?.spanId).toBe(sent.spanId);
    }
    expect(new Set(spans().map((span) => span.spanContext().spanId)).size).toBe(2);
  });

  it("cover the time it took", () => {
    const { traces, spans } = rig();
    traces.listen(closed);
    const [seconds, nanoseconds] = spans()[0]?.duration ?? [0, 0];
    expect(seconds + nanoseconds / 1e9).toBeCloseTo(1.5, 1);
  });

  it("say nothing of what is no piece of an instance", () => {
    const { traces, spans } = rig();
    traces.listen({ kind: "lease.renewed", keys: 1, ms: 1 });
    traces.listen({ ...ran, kind: "activity.started", redelivered: false, waitedMs: 1 } as never);
    expect(spans()).toEqual([]);
  });

  it("take a traceparent only in its right form", () => {
    expect(parseTraceparent(undefined)).toBeUndefined();
    expect(parseTraceparent("00-xyz-1-01")).toBeUndefined();
    expect(parseTraceparent(`00-${"0".repeat(32)}-${"0".repeat(16)}-01`)).toBeUndefined();
    const good = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    expect(formatTraceparent(parseTraceparent(good) ?? derivedTrace("x"))).toBe(good);
    expect(context.active()).toBe(ROOT_CONTEXT);
    expect(trace.getSpan(context.active())).toBeUndefined();
  });
});
