import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hands, json, names, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
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

describe("dead letters over HTTP", () => {
  it("sends the original again as it came and removes the letter", async () => {
    const seq = await put.dead({
      what: "inbox",
      id: "lost-1",
      subject: "inbox.3.lost-1.signal.go",
      body: '{"n":7}',
    });
    expect(await json(await gateway.get(`/api/dead/${seq}`))).toMatchObject({
      text: '{"n":7}',
      id: "lost-1",
    });
    const response = await gateway.post(`/api/dead/${seq}/retry`, {});
    expect(await json(response)).toEqual({ ok: true, subject: "orchestrations.lost-1.signal.go" });
    const [again] = (await gateway.bus.read(names.inboxStream, "inbox.*.lost-1.>")) ?? [];
    expect(Buffer.from(again?.body ?? []).toString()).toBe('{"n":7}');
    expect(again?.headers["X-From"]).toBe("test");
    expect((await gateway.get(`/api/dead/${seq}`)).status).toBe(404);
    expect((await gateway.post(`/api/dead/${seq}/retry`, {})).status).toBe(404);
  });

  it("pages over gaps and discards", async () => {
    const seqs: number[] = [];
    for (let i = 0; i < 6; i++) {
      seqs.push(
        await put.dead({ what: "activity", id: `d${i}`, subject: "activities.default.greet", body: `${i}` }),
      );
    }
    for (const seq of [seqs[1], seqs[3]]) {
      expect((await gateway.post(`/api/dead/${seq}/discard`, {})).status).toBe(200);
    }
    const first = await json(await gateway.get("/api/dead?limit=3"));
    expect((first.letters as { id: string }[]).map(({ id }) => id)).toEqual(["d5", "d4", "d2"]);
    const second = await json(await gateway.get(`/api/dead?limit=3&before=${first.next}`));
    expect((second.letters as { id: string }[])[0]?.id).toBe("d0");
  });

  it("sends no message to an instance that a worker says somebody has sent (SEC-7)", async () => {
    for (const what of ["activity", "claim", "session"]) {
      const seq = await put.dead({ what, id: "x", subject: "orchestrations.victim.terminate", body: "{}" });
      const response = await gateway.post(`/api/dead/${seq}/retry`, {});
      expect(await json(response)).toMatchObject({ error: { code: "not_retryable" } });
    }
    expect(await gateway.bus.read(names.inboxStream, "inbox.*.victim.>")).toEqual([]);
  });

  it("does not send to subjects that are not for letters", async () => {
    const seq = await put.dead({ what: "odd", id: "x", subject: "$JS.API.STREAM.DELETE.INBOX", body: "" });
    const response = await gateway.post(`/api/dead/${seq}/retry`, {});
    expect(response.status).toBe(409);
    expect(await json(response)).toMatchObject({ error: { code: "not_retryable" } });
  });
});
