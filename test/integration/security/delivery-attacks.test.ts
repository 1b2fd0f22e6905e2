/**
 * What somebody with the key of one role has the server publish: it answers and delivers wherever a request says, also
 * where its sender may not publish (SEC-4, SEC-8, SEC-9).
 */
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type Bus,
  connectBus,
  defaultTopology,
  encode,
  ensureTopology,
  startMicroService,
  subjects,
} from "../../../shared/bus/index.ts";
import { silent, systemRandom, systemRuntime } from "../../../shared/runtime/index.ts";
import type { RoleName } from "../../../shared/security/index.ts";
import { type RawClient, rawClient } from "../../support/nats/raw-client.ts";
import { type SecuredNats, startSecuredNats } from "../../support/nats/secured-nats.ts";

const names = subjects();
const key = "$KV.leases.session.forged.1";
const forged = JSON.stringify({ kind: "task", forged: true });
let secured: SecuredNats;
let mallory: RawClient;
const open: Bus[] = [];

beforeAll(async () => {
  secured = await startSecuredNats();
  const provisioner = await connectBus({ ...secured.connection("provisioner"), announce: silent });
  await ensureTopology(provisioner, names, { ...defaultTopology, historyShards: 1 });
  await provisioner.close();
});
afterAll(() => secured?.nats.stop());
beforeEach(async () => {
  mallory = await rawClient(secured, "worker");
});
afterEach(async () => {
  await mallory[Symbol.asyncDispose]();
  for (const bus of open.splice(0)) await bus.close();
});

async function as(role: RoleName): Promise<Bus> {
  const bus = await connectBus({ ...secured.connection(role), announce: silent });
  open.push(bus);
  return bus;
}

/** A message that the role itself could not publish there, by what the server does for it. */
const ways: Record<string, (nc: NatsConnection, to: string) => Promise<void>> = {
  "by a consumer that pushes": async (nc, to) => {
    const name = `m${Math.random().toString(36).slice(2)}`;
    const config = {
      name,
      deliver_subject: to,
      filter_subject: key,
      ack_policy: "none",
      deliver_policy: "last",
    };
    await nc.request(
      `$JS.API.CONSUMER.CREATE.KV_leases.${name}.${key}`,
      JSON.stringify({ stream_name: "KV_leases", config }),
    );
  },
  "by a consumer that is asked for its next message": async (nc, to) => {
    const name = `m${Math.random().toString(36).slice(2)}`;
    const config = { name, filter_subject: key, ack_policy: "explicit", deliver_policy: "last" };
    await nc.request(
      `$JS.API.CONSUMER.CREATE.KV_leases.${name}.${key}`,
      JSON.stringify({ stream_name: "KV_leases", config }),
    );
    nc.publish(`$JS.API.CONSUMER.MSG.NEXT.KV_leases.${name}`, JSON.stringify({ batch: 1 }), { reply: to });
  },
  "by a direct get": async (nc, to) => nc.publish(`$JS.API.DIRECT.GET.KV_leases.${key}`, "", { reply: to }),
};

/** Subjects that others listen on, and a role that does. */
const listeners: [RoleName, string][] = [
  ["worker", names.laneOfActivity("q", "n")],
  ["worker", names.sessionCalls("t", "w1", "s1")],
  ["worker", names.claimOffer("w1", "t")],
  ["worker", names.workerControl("w1")],
  ["worker", names.cancels],
  ["orchestrator", names.laneOfOwners("o1").replaceAll("*", "x")],
  ["orchestrator", names.laneOfHolder("o1")],
  ["gateway", names.pulse],
];

describe.each(Object.entries(ways))("SEC-8: what a worker makes up and has delivered %s", (_way, deliver) => {
  it.each(listeners)("is taken by no %s on %s", async (role, subject) => {
    const listener = await as(role);
    const heard: string[] = [];
    await listener.subscribe(subject, {}, ({ body }) => void heard.push(new TextDecoder().decode(body)));
    mallory.nc.publish(key, forged);
    await mallory.nc.flush();
    // It does come: a plain connection hears it.
    const plain = await rawClient(secured, role);
    const came = new Promise<string>((resolve) => {
      plain.nc.subscribe(subject, { callback: (_error, message) => resolve(message.string()) });
    });
    await plain.nc.flush();
    await deliver(mallory.nc, subject);
    expect(await came).toBe(forged);
    await listener.flush();
    expect(heard).toEqual([]);
    await plain[Symbol.asyncDispose]();
  });
});

describe("SEC-4: a request without an inbox for its answer is none", () => {
  const acknowledged = async (nc: NatsConnection, to: string) =>
    nc.publish(names.verb("mine", "activity"), "{}", { reply: to });

  it.each([...Object.entries(ways), ["by an acknowledgement", acknowledged] as const])(
    "so a worker starts nothing %s",
    async (_way, deliver) => {
      const started: string[] = [];
      const orchestrator = await as("orchestrator");
      const handler = async ({ body }: { body: Uint8Array }) => {
        started.push(new TextDecoder().decode(body));
        return { body };
      };
      const endpoint = { name: "start", subject: "start.*", handler };
      const service = { name: "holdfast", version: "1.0.0", description: "", endpoints: [endpoint] };
      const random = systemRandom;
      await startMicroService(orchestrator, service, { ...systemRuntime(), random });
      mallory.nc.publish(key, forged);
      await mallory.nc.flush();
      const plain = await rawClient(secured, "gateway");
      const came = new Promise<void>((resolve) => {
        plain.nc.subscribe("start.demo", { callback: () => resolve() });
      });
      await plain.nc.flush();
      await deliver(mallory.nc, "start.demo");
      await came;
      const client = await as("client");
      const answer = await client.request("start.demo", encode("asked"), { timeoutMs: 5_000 });
      expect(answer.kind).toBe("reply");
      expect(started).toEqual(['"asked"']);
      await plain[Symbol.asyncDispose]();
    },
  );
});

describe("SEC-9: an answer is awaited where nobody can guess", () => {
  it("so a worker that is asked once answers nothing else in the server's place", async () => {
    const orchestrator = await as("orchestrator");
    const seen: string[] = [];
    mallory.nc.subscribe(names.laneOfSeekers, {
      callback: (_error, message) => {
        seen.push(message.reply ?? "");
        message.respond("{}");
      },
    });
    mallory.nc.subscribe(names.laneOfHoldings("w1"), { callback: () => undefined });
    await mallory.nc.flush();
    const asked = () => orchestrator.request(names.laneOfSeekers, encode({}), { timeoutMs: 5_000 });
    await asked();
    await asked();
    const [first = "", second = ""] = seen;
    const inbox = second.slice(0, second.lastIndexOf(".") + 1);
    const [before, last] = [first, second].map((reply) => Number.parseInt(reply.slice(inbox.length), 36));
    const waiting = orchestrator.request(names.laneOfHoldings("w1"), encode({}), { timeoutMs: 1_000 });
    mallory.nc.publish(key, forged);
    const step = Math.max(1, Math.min(5, (last ?? 0) - (before ?? 0)));
    for (let ahead = 1; ahead <= 100; ahead++)
      mallory.nc.publish(`$JS.API.DIRECT.GET.KV_leases.${key}`, "", {
        reply: `${inbox}${((last ?? 0) + step * ahead).toString(36)}`,
      });
    await mallory.nc.flush();
    expect(await waiting).toEqual({ kind: "timeout" });
  });

  it("and inboxes of one process have nothing in common", async () => {
    const [tester, orchestrator] = [await rawClient(secured, "orchestrator"), await as("orchestrator")];
    const inboxes = new Set<string>();
    tester.nc.subscribe("_INBOX_orchestrator.>", {
      callback: (_error, { subject }) => void inboxes.add(subject.split(".")[1] ?? ""),
    });
    await tester.nc.flush();
    await orchestrator.streamInfo(names.inboxStream);
    const name = "p0";
    await orchestrator.ensureConsumer({
      ...{ stream: names.inboxStream, name, filter: "inbox.0.>", ackWaitMs: 1_000 },
    });
    const consumption = await orchestrator.consume(names.inboxStream, name, {
      maxMessages: 1,
      onMessage: () => undefined,
    });
    await expect.poll(() => inboxes.size).toBeGreaterThan(1);
    const beginnings = [...inboxes].map((token) => token.slice(0, 6));
    expect(new Set(beginnings).size).toBe(inboxes.size);
    await consumption.stop();
    await tester[Symbol.asyncDispose]();
  });
});

it("a header that names where a batch belongs changes nothing of others' streams", async () => {
  const bus = await connectBus({ ...secured.tester, announce: silent });
  open.push(bus);
  const wire = headers();
  wire.set("Nats-Batch-Id", "b");
  wire.set("Nats-Batch-Sequence", "1");
  wire.set("Nats-Batch-Commit", "1");
  mallory.nc.publish(names.verb("batched", "activity"), "{}", { headers: wire });
  await mallory.nc.flush();
  await bus.flush();
  expect(await bus.read(names.inboxStream, names.inboxOf("batched"))).toEqual([]);
});
