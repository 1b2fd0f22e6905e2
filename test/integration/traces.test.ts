/** One trace through client, orchestrator, worker and session, as a collector receives it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Stack, until } from "../support/processes/stack.ts";

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  service: string;
}

interface Export {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] };
    scopeSpans: { spans: Omit<Span, "service">[] }[];
  }[];
}

const app = fileURLToPath(new URL("../support/apps/dashboard-app.ts", import.meta.url));
const spans: Span[] = [];
const collector = createServer((request, response) => {
  let text = "";
  request.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  request.on("end", () => {
    for (const { resource, scopeSpans } of (JSON.parse(text) as Export).resourceSpans) {
      const service = resource.attributes.find(({ key }) => key === "service.name")?.value.stringValue ?? "";
      for (const span of scopeSpans.flatMap((scope) => scope.spans)) spans.push({ ...span, service });
    }
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
});

let stack: Stack;

beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const { port } = collector.address() as AddressInfo;
  stack = await Stack.start({ app, env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  collector.closeAllConnections();
  collector.close();
});

it("exports one trace of an instance from all the processes that worked on it", async () => {
  await stack.client.start("diary", { pages: 2 }, { id: "traced" });
  await stack.client.result("traced", { timeout: "60s" });
  const root = await until("the root", () => spans.find(({ name }) => name === "orchestration diary"));
  const mine = await until("the calls", () => {
    const found = spans.filter(({ traceId }) => traceId === root.traceId);
    return found.filter(({ name }) => name === "call notebook.write").length === 2 && found;
  });
  expect(new Set(mine.map(({ service }) => service))).toEqual(
    new Set(["holdfast-orchestrator", "holdfast-worker"]),
  );
  expect(mine.map(({ name }) => name)).toContain("session init notebook");
  for (const span of mine.filter(({ spanId }) => spanId !== root.spanId)) {
    expect(span.parentSpanId).toBe(root.spanId);
  }
});

it("joins the trace a start carries in its header", async () => {
  const traceId = "c".repeat(32);
  await stack.bus.publish("orchestrations.joined.start.hello", Buffer.from('{"name":"you"}'), {
    headers: { traceparent: `00-${traceId}-${"d".repeat(16)}-01` },
  });
  await until("both spans", () => {
    const names = spans.filter((span) => span.traceId === traceId).map(({ name }) => name);
    return names.includes("activity greet") && names.includes("orchestration hello");
  });
});

it("tells nothing a second time when another orchestrator replays the instance", async () => {
  await stack.client.start("diary", { pages: 20 }, { id: "replayed" });
  await until("a part of it", async () =>
    (await stack.client.list()).some(({ instanceId }) => instanceId === "replayed"),
  );
  await until("some answers", async () => {
    const events = await stack.client.history("replayed");
    return events.filter(({ kind }) => kind === "activity.completed").length >= 5;
  });
  for (const orchestrator of stack.of("orchestrator")) orchestrator.kill("SIGKILL");
  await stack.run("orchestrator");
  expect(await stack.client.result("replayed", { timeout: "60s" })).toBe(20);
  const events = await stack.client.history("replayed");
  const calls = events.filter(({ kind }) => kind === "activity.scheduled").length;
  // The worker's last spans leave it a little later than the instance's end.
  const ofIt = await until("all spans", () => {
    const root = spans.filter(({ name }) => name === "orchestration diary").at(-1);
    const found = spans.filter(({ traceId }) => traceId === root?.traceId);
    return found.filter(({ name }) => name === "call notebook.write").length >= calls && found;
  });
  const count = (wanted: string) => ofIt.filter(({ name }) => name === wanted).length;
  expect(count("orchestration diary")).toBe(1);
  expect(count("call notebook.write")).toBe(calls);
  expect(count("session init notebook")).toBe(1);
  expect(new Set(ofIt.map(({ spanId }) => spanId)).size).toBe(ofIt.length);
}, 120_000);
