/** The names in examples/observability against the real /metrics. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageDir } from "../../services/version.ts";
import { encode, subjects } from "../../shared/bus/index.ts";
import { systemClock } from "../../shared/runtime/index.ts";
import { Telemetry } from "../../shared/telemetry/index.ts";
import {
  eventually,
  hands,
  json,
  names,
  startGateway,
  type TestGateway,
} from "../support/gateway/gateway.ts";
import type { TestNats } from "../support/nats/nats-server.ts";
import { startServer } from "../support/nats/secured-nats.ts";

const example = (file: string) => readFileSync(join(packageDir(), "examples", "observability", file), "utf8");

let nats: TestNats;
let gateway: TestGateway;

beforeAll(async () => {
  nats = await startServer();
  gateway = await startGateway(nats.url);
});
afterAll(async () => {
  await gateway?.stop();
  await nats?.stop();
});

const namesIn = (text: string): Set<string> => new Set(text.match(/holdfast_[a-z_]+/g));

/** As Prometheus stores them: a histogram has three series. */
function seriesOf(metrics: string): Set<string> {
  const series = new Set<string>();
  for (const [, name = "", type] of metrics.matchAll(/^# TYPE (holdfast_\w+) (\w+)$/gm)) {
    if (type === "histogram") for (const end of ["_bucket", "_sum", "_count"]) series.add(name + end);
    else series.add(name);
  }
  return series;
}

describe("examples/observability", () => {
  it.each(["grafana/holdfast.json", "alerts.yml"])(
    "%s refers only to metrics that are served",
    async (file) => {
      const served = seriesOf(await (await gateway.get("/metrics")).text());
      const wanted = namesIn(example(file));
      expect(wanted.size).toBeGreaterThan(5);
      expect([...wanted].filter((name) => !served.has(name))).toEqual([]);
    },
  );

  it("has a dashboard Grafana can load: every panel has a place and a question", () => {
    const dashboard = JSON.parse(example("grafana/holdfast.json")) as {
      panels: { id: number; type: string; gridPos: { x: number; w: number }; targets?: { expr: string }[] }[];
    };
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    for (const panel of dashboard.panels) {
      expect(panel.gridPos.x + panel.gridPos.w).toBeLessThanOrEqual(24);
      if (panel.type !== "row") expect(panel.targets?.every(({ expr }) => expr.length > 0)).toBe(true);
    }
  });
});

describe("the gateway's /metrics", () => {
  it("tells the installation: instances, sessions, slots, streams, dead letters, requests", async () => {
    const put = hands(gateway.bus);
    await put.instance({ instanceId: "m-1", status: "running" });
    const blobs = [{ name: "m-b", key: "k", bytes: 7, storedAt: 1 }];
    await put.session({ sessionId: "m-s", phase: "active", type: "ml", rebuilds: 3, blobs });
    await put.worker({ workerId: "m-w" });
    await put.dead({ what: "inbox", id: "x", subject: "inbox.1.x.cancel", body: "" });
    await gateway.bus.ensureConsumer({
      stream: names.sessionsStream,
      name: "w_m-w",
      filter: names.sessionWorkOf("m-w"),
      ackWaitMs: 30_000,
    });
    await gateway.bus.publish(names.sessionWork("m-w", "m-s"), encode({}));
    await gateway.get("/api/instances/m-1");
    const text = await eventually(async () => {
      const found = await (await gateway.get("/metrics")).text();
      return (
        found.includes('holdfast_instances{status="running"} 1') &&
        found.includes("holdfast_dlq_messages 1") &&
        found
      );
    }, "the numbers");
    expect(text).toContain('holdfast_sessions{type="ml",phase="active"} 1');
    expect(text).toContain('holdfast_session_blob_bytes{type="ml"} 7');
    expect(text).toContain('holdfast_session_rebuilds{type="ml"} 3');
    expect(text).toContain('holdfast_worker_slots_max{kind="activities"} 8');
    expect(text).toContain('holdfast_stream_messages{stream="DEAD"} 1');
    expect(text).toMatch(
      /holdfast_http_request_seconds_count\{route="\/api\/instances\/:id",method="GET",status="200"\} \d/,
    );
    await eventually(async () => {
      const found = await (await gateway.get("/metrics")).text();
      return found.includes('holdfast_consumer_pending{stream="SESSIONS",consumer="worker"} 1');
    }, "the consumer without its worker's id");
    expect(text).not.toContain("m-1");
  });

  it("feeds the overview with latencies from other processes' pulses", async () => {
    const telemetry = new Telemetry({ service: "worker", id: "w", version: "0", metricsPort: 0 });
    await telemetry.start(gateway.bus, subjects(), systemClock);
    try {
      for (let i = 0; i < 100; i++) {
        telemetry.listen({
          kind: "activity.started",
          instanceId: "i",
          name: "a",
          of: 1,
          attempt: 1,
          redelivered: false,
          waitedMs: 10,
        });
      }
      const latency = await eventually(async () => {
        const body = await json(await gateway.get("/api/overview"));
        return (body.latency as { scheduleToStart?: { p50: number; count: number } }).scheduleToStart;
      }, "the pulse");
      expect(latency.count).toBe(100);
      expect(latency.p50).toBeGreaterThan(8);
      expect(latency.p50).toBeLessThan(12);
      const own = await fetch(`http://127.0.0.1:${telemetry.port}/metrics`);
      expect(await own.text()).toContain('holdfast_activity_schedule_to_start_seconds_count{name="a"} 100');
      const ready = async () => (await fetch(`http://127.0.0.1:${telemetry.port}/readyz`)).status;
      expect(await ready()).toBe(503);
      telemetry.serving = true;
      expect(await ready()).toBe(200);
    } finally {
      await telemetry.stop();
    }
  });
});
