import { describe, expect, it } from "vitest";
import { pulseMs, quantiles } from "../../../services/gateway/live/latency.ts";
import type { Bus } from "../../../shared/bus/index.ts";
import { subjects } from "../../../shared/bus/index.ts";
import type { Clock, Happening } from "../../../shared/runtime/index.ts";
import { bounded, PulseSender, pulseBucket, Telemetry } from "../../../shared/telemetry/index.ts";

const told = async (...happenings: Happening[]): Promise<string> => {
  const telemetry = new Telemetry({ service: "test", id: "test-1", version: "1.2.3" });
  for (const happening of happenings) telemetry.listen(happening);
  return telemetry.text();
};

describe("metrics", () => {
  it("count instances, turns and appends in base units", async () => {
    const text = await told(
      { kind: "instance.started", instanceId: "i-1", name: "greet", execution: 1 },
      { kind: "instance.closed", instanceId: "i-1", name: "greet", status: "completed", durationMs: 1500 },
      {
        kind: "turn.committed",
        instanceId: "i-1",
        execution: 1,
        events: 3,
        turnMs: 4,
        appendMs: 2,
      },
      { kind: "turn.fenced", instanceId: "i-1" },
    );
    expect(text).toContain('holdfast_orchestrations_started_total{name="greet"} 1');
    expect(text).toContain('holdfast_orchestrations_closed_total{name="greet",status="completed"} 1');
    expect(text).toContain(
      'holdfast_orchestration_duration_seconds_sum{name="greet",status="completed"} 1.5',
    );
    expect(text).toContain("holdfast_turn_duration_seconds_sum 0.004");
    expect(text).toContain("holdfast_history_append_seconds_sum 0.002");
    expect(text).toContain("holdfast_history_cas_conflicts_total 1");
  });

  it("show models that were loaded, and how full batches were", async () => {
    const ran = { kind: "batch.ran", type: "ml", name: "classify", ms: 20 } as const;
    const text = await told(
      { kind: "model.loaded", model: "spam", device: "cpu", loadMs: 1500, bytes: 4096 },
      { ...ran, size: 8 },
      { ...ran, size: 4 },
    );
    expect(text).toContain('holdfast_model_load_seconds_sum{model="spam",device="cpu"} 1.5');
    expect(text).toContain('holdfast_model_bytes{model="spam",device="cpu"} 4096');
    expect(text).toContain('holdfast_batch_size_sum{type="ml",name="classify"} 12');
    expect(text).toContain('holdfast_batch_size_count{type="ml",name="classify"} 2');
  });

  it("count sessions up and down, and how their state came about", async () => {
    const attached = {
      kind: "session.attached",
      sessionId: "s-1",
      type: "ml",
      epoch: 7,
      initMs: 1200,
      warm: false,
      restored: false,
      openedMs: 1,
    } as const;
    const text = await told(
      attached,
      { ...attached, sessionId: "s-2", warm: true },
      { kind: "session.detached", sessionId: "s-1", type: "ml", epoch: 7, why: "lost" },
      {
        kind: "session.lost",
        sessionId: "s-1",
        instanceId: "i-1",
        attachment: 1,
        reason: "expired",
        lateMs: 250,
      },
      { kind: "completion.fenced", instanceId: "i-1", of: 3, epoch: 7 },
    );
    expect(text).toContain('holdfast_sessions_active{type="ml"} 1');
    expect(text).toContain('holdfast_session_attached_total{type="ml",start="warm"} 1');
    expect(text).toContain('holdfast_session_lost_total{reason="expired"} 1');
    expect(text).toContain("holdfast_session_lost_detection_seconds_sum 0.25");
    expect(text).toContain("holdfast_session_fenced_total 1");
  });

  it("never have an id in a label", async () => {
    const id = "id-0123456789";
    const text = await told(
      {
        kind: "activity.started",
        instanceId: id,
        name: "greet",
        of: 1,
        attempt: 1,
        redelivered: true,
        waitedMs: 3,
      },
      { kind: "activity.ended", instanceId: id, name: "greet", of: 1, attempt: 1, outcome: "failed", ms: 3 },
      { kind: "dead.lettered", what: "inbox", id, subject: `inbox.1.${id}.x`, code: "invalid", message: id },
      {
        kind: "call.ended",
        sessionId: id,
        type: "ml",
        name: "classify",
        of: 1,
        epoch: 1,
        outcome: "completed",
        ms: 1,
      },
      { kind: "lease.lost", key: `session.${id}.1`, epoch: 1, why: "expired" },
      { kind: "work.purged", workerId: id, sessionId: id, messages: 1 },
      { kind: "fault", where: "turn", code: "boom", message: id },
    );
    expect(text).not.toContain(id);
  });

  it("stay bounded when anybody can make up names", async () => {
    const label = bounded(3);
    expect(["a", "b", "c", "d", "a", "e"].map(label)).toEqual(["a", "b", "c", "other", "a", "other"]);
  });

  it("are all there before anything happens, so that dashboards and alerts find them", async () => {
    expect(await told()).toContain("# TYPE holdfast_nondeterminism_total counter");
  });
});

describe("the pulse", () => {
  it("adds up over processes to quantiles that are right within a tenth", () => {
    const times = Array.from({ length: 1000 }, (_, i) => ({ at: pulseBucket(i + 1), n: 1 }));
    const found = quantiles(times);
    expect(found?.count).toBe(1000);
    expect(Math.abs((found?.p50 ?? 0) - 500) / 500).toBeLessThan(0.1);
    expect(Math.abs((found?.p95 ?? 0) - 950) / 950).toBeLessThan(0.1);
    expect(pulseMs(pulseBucket(0))).toBeLessThan(0.1);
    expect(quantiles([])).toBeUndefined();
  });

  it("sends what happened since the last one, and nothing when nothing did", async () => {
    const sent: unknown[] = [];
    const waiting: (() => void)[] = [];
    const bus = {
      send: (_: string, body: Uint8Array) => sent.push(JSON.parse(Buffer.from(body).toString())),
    };
    const clock = {
      after(_: number, fn: () => void) {
        waiting.push(fn);
        return { cancel: () => undefined };
      },
    };
    const pulse = new PulseSender("worker", "w-1");
    pulse.attach(bus as unknown as Bus, subjects(), clock as unknown as Clock);
    await pulse.start();
    pulse.listen({
      kind: "activity.started",
      instanceId: "i",
      name: "a",
      of: 1,
      attempt: 1,
      redelivered: false,
      waitedMs: 8,
    });
    waiting.shift()?.();
    waiting.shift()?.();
    expect(sent).toEqual([
      { v: 1, service: "worker", id: "w-1", times: { scheduleToStart: [{ at: 12, n: 1 }] } },
    ]);
  });
});
