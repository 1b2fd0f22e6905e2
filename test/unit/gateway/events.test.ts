/**
 * Who may follow which live events. While NATS is away there is no entry in the audit, so there are no values until the
 * page comes again (GATEWAY-8).
 */
import { Hono } from "hono";
import { expect, it } from "vitest";
import { serveEvents } from "../../../services/gateway/http/events.ts";
import { Broadcast } from "../../../services/gateway/live/broadcast.ts";

async function follow(connected: boolean, scope?: { orchestrations: string[] }) {
  const broadcast = new Broadcast();
  const recorded: string[] = [];
  let reconnected: () => void = () => undefined;
  const source = {
    broadcast,
    overview: () => Promise.reject(new Error("not asked for")),
    admit: async () => ({ name: "ada", role: "viewer", payloads: true, from: "", https: false, scope }),
    recordRead: async (_: unknown, what: string) => void recorded.push(what),
    busConnected: () => connected,
    onReconnected: (listener: () => void) => {
      reconnected = listener;
      return () => undefined;
    },
  };
  const app = new Hono().get("/", serveEvents(source as unknown as Parameters<typeof serveEvents>[0]));
  const response = await app.request("/?topics=workers,instances");
  await expect.poll(() => broadcast.size).toBe(1);
  broadcast.send("instances", () => ({ rows: [{ error: { code: "boom", message: "S3CRET" } }] }));
  return { response, broadcast, recorded, reconnect: () => reconnected() };
}

it("records who follows values before it sends any", async () => {
  const { response, broadcast, recorded } = await follow(true);
  let text = "";
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    if (text.includes("event: instances")) broadcast.close();
  }
  expect(text).toContain("S3CRET");
  expect(recorded).toEqual(["instances,workers"]);
});

it("sends shapes where nothing can be recorded, and ends when NATS is back", async () => {
  const { response, recorded, reconnect } = await follow(false);
  let text = "";
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    if (text.includes("event: instances")) reconnect();
  }
  expect(text).toContain("text of 6");
  expect(text).not.toContain("S3CRET");
  expect(recorded).toEqual([]);
});

it("sends a token for some orchestrations no rows of the others", async () => {
  const { response, broadcast, recorded } = await follow(true, { orchestrations: ["demo"] });
  broadcast.close();
  expect(await response.text()).toBe("event: hello\ndata: {}\n\n");
  expect(recorded).toEqual([]);
});
