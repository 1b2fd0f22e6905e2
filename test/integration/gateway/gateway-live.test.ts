import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually, hands, json, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { type EventLine, listen } from "../../support/gateway/sse.ts";
import type { TestNats } from "../../support/nats/nats-server.ts";
import { startServer } from "../../support/nats/secured-nats.ts";

let nats: TestNats;
let gateway: TestGateway;
let put: ReturnType<typeof hands>;

beforeAll(async () => {
  nats = await startServer();
  gateway = await startGateway(nats.url);
  put = hands(gateway.bus);
});
afterAll(async () => {
  await gateway?.stop();
  await nats?.stop();
});

const rowsOf = (line: EventLine) => (line.data as { rows: { instanceId: string; status: string }[] }).rows;

describe("live events", () => {
  it("tell of instances, sessions and workers as they change", async () => {
    await using events = await listen(`${gateway.url}/api/events?topics=instances,sessions,workers`);
    await put.instance({ instanceId: "live-1" });
    await put.session({ sessionId: "live-s" });
    await put.worker({ workerId: "live-w" });
    await events.until(({ event, data }) => event === "instances" && JSON.stringify(data).includes("live-1"));
    await events.until(({ event, data }) => event === "sessions" && JSON.stringify(data).includes("live-s"));
    await events.until(({ event, data }) => event === "workers" && JSON.stringify(data).includes("live-w"));
  });

  it("tell a lease that was renewed and a worker that expired", async () => {
    await put.session({ sessionId: "renewed", workerId: "brief" });
    await using events = await listen(`${gateway.url}/api/events?topics=sessions,workers`);
    await put.lease("renewed", 1, "brief");
    await put.worker({ workerId: "brief" }, 1_000);
    await events.until(
      ({ event, data }) => event === "sessions" && JSON.stringify(data).includes('"renewedAt"'),
    );
    await events.until(
      ({ event, data }) => event === "workers" && (data as { gone: string[] }).gone.includes("brief"),
    );
  });

  it("make one batch of many changes, the last of each", async () => {
    await using events = await listen(`${gateway.url}/api/events?topics=instances`);
    await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        put.instance({ instanceId: `burst-${i % 10}`, status: i >= 190 ? "completed" : "running" }),
      ),
    );
    const done = new Set<string>();
    let frames = 0;
    while (done.size < 10) {
      const line = await events.until(({ event }) => event === "instances");
      frames++;
      for (const row of rowsOf(line)) if (row.status === "completed") done.add(row.instanceId);
    }
    expect(frames).toBeLessThan(20);
  });

  it("tell one page about its instance at every turn, also when the summary is the same", async () => {
    await using events = await listen(`${gateway.url}/api/events?topics=&instance=watched`);
    await events.until(({ event }) => event === "hello");
    await put.instance({ instanceId: "watched" });
    expect((await events.until(({ event }) => event === "changed")).data).toEqual({ instanceId: "watched" });
  });

  it("bring the overview once a second", async () => {
    await using events = await listen(`${gateway.url}/api/events?topics=overview`);
    const hello = await events.until(({ event }) => event === "hello");
    expect(hello.data).toMatchObject({ overview: { bus: { connected: true } } });
    await events.until(({ event }) => event === "overview");
  });

  it("refuse topics that do not exist", async () => {
    expect((await gateway.get("/api/events?topics=secrets")).status).toBe(400);
  });
});

describe("without NATS", () => {
  it("stays up, says so, and is whole again when NATS is back", async () => {
    await put.instance({ instanceId: "before" });
    await eventually(async () => (await gateway.get("/api/instances/before")).ok, "before");
    await using events = await listen(`${gateway.url}/api/events?topics=overview,instances`);
    await nats.kill();
    await events.until(
      ({ event, data }) => event === "overview" && !(data as { bus: { connected: boolean } }).bus.connected,
    );
    const refused = await gateway.get("/api/instances");
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await json(refused)).toMatchObject({ ok: false, error: { code: "bus_away" } });
    expect((await gateway.post("/api/orchestrations/x", { input: 1 })).status).toBe(503);
    expect((await gateway.get("/livez")).status).toBe(200);
    expect((await gateway.get("/readyz")).status).toBe(503);
    const overview = await json(await gateway.get("/api/overview"));
    expect((overview.troubles as { code: string }[]).map(({ code }) => code)).toEqual(["bus_away"]);
    await nats.restart();
    await eventually(async () => (await gateway.get("/readyz")).ok, "ready again", 20_000);
    await put.instance({ instanceId: "after" });
    await events.until(({ event, data }) => event === "instances" && JSON.stringify(data).includes("after"));
    expect((await gateway.get("/api/instances/before")).status).toBe(200);
  });
});
