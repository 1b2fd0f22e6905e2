/** Streams read over HTTP by a client whose connection breaks again and again. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encode } from "../../../shared/bus/index.ts";
import { hands, names, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import type { TestNats } from "../../support/nats/nats-server.ts";
import { startServer } from "../../support/nats/secured-nats.ts";

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

const write = (instanceId: string, index: number, run = 1) =>
  gateway.bus.publish(
    names.stream(instanceId, 1, 2),
    encode({ v: 1, attempt: 1, run, index, at: Date.now(), chunk: { json: `t${index}` } }),
    { msgId: `chunk-${instanceId}-1-2-1-${run}-${index}` },
  );

interface Read {
  indexes: number[];
  lastId: string | undefined;
  ended: boolean;
}

/** One connection: reads until it is aborted, or until the end. */
async function readSome(instanceId: string, read: Read, hangUpAfter: number): Promise<void> {
  const hangUp = new AbortController();
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (read.lastId !== undefined) headers["last-event-id"] = read.lastId;
  const response = await fetch(`${gateway.url}/api/instances/${instanceId}/stream`, {
    headers,
    signal: hangUp.signal,
  });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const decoder = new TextDecoder();
  let text = "";
  let got = 0;
  try {
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const frame = text.slice(0, end);
        text = text.slice(end + 2);
        if (frame.startsWith("event: end")) read.ended = true;
        const [, id, data] = /^id: (\d+)\nevent: chunk\ndata: (.*)$/.exec(frame) ?? [];
        if (id === undefined || data === undefined) continue;
        read.lastId = id;
        read.indexes.push((JSON.parse(data) as { index: number }).index);
        if (++got >= hangUpAfter) return;
      }
    }
  } finally {
    hangUp.abort();
  }
}

describe("the stream of an instance over HTTP", () => {
  it("comes whole and in order over 100 broken lines and a gateway that is replaced", async () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.info(`seed ${seed}`);
    let state = seed;
    const random = (most: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return 1 + Math.floor((state / 2 ** 31) * most);
    };
    const put = hands(gateway.bus);
    await put.instance({ instanceId: "talk", status: "running" });
    const total = 1_000;
    const writing = (async () => {
      for (let index = 0; index < total; index++) await write("talk", index);
      await put.instance({ instanceId: "talk", status: "completed" });
    })();
    const read: Read = { indexes: [], lastId: undefined, ended: false };
    for (let line = 1; line <= 100; line++) {
      await readSome("talk", read, random(9));
      if (line === 50) {
        await writing;
        await gateway.stop();
        gateway = await startGateway(nats.url);
      }
    }
    while (!read.ended) await readSome("talk", read, Number.POSITIVE_INFINITY);
    expect(read.indexes).toEqual(Array.from({ length: total }, (_, index) => index));
  });

  it("says which run wrote a chunk, so that a call that was repeated is not shown twice", async () => {
    await hands(gateway.bus).instance({ instanceId: "twice", status: "completed" });
    await write("twice", 0);
    await write("twice", 0, 2);
    const response = await gateway.get("/api/instances/twice/stream", { accept: "text/event-stream" });
    const text = await response.text();
    expect([...text.matchAll(/"run":(\d)/g)].map(([, run]) => run)).toEqual(["1", "2"]);
    expect(text.trimEnd()).toMatch(/event: end\ndata: \{"status":"completed"\}$/);
  });

  it("refuses who asks for nonsense or for nobody, and still answers JSON to who did not ask for a stream", async () => {
    const sse = { accept: "text/event-stream" };
    expect((await gateway.get("/api/instances/ghost/stream", sse)).status).toBe(404);
    expect((await gateway.get("/api/instances/twice/stream", { ...sse, "last-event-id": "x" })).status).toBe(
      400,
    );
    const page = await gateway.get("/api/instances/twice/stream");
    expect(await page.json()).toMatchObject({ items: [{ run: 1 }, { run: 2 }] });
  });
});
