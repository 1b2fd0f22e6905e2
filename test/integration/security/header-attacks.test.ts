/** A client that may publish only `orchestrations.mine.>` and what headers let it do to others: nothing (SEC-1, SEC-2). */
import { jetstream } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseInbox } from "../../../services/orchestrator/parse-inbox.ts";
import {
  type Bus,
  connectBus,
  defaultTopology,
  encode,
  ensureTopology,
  inInbox,
  publishAnew,
  subjects,
} from "../../../shared/bus/index.ts";
import { silent, systemRandom } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/index.ts";
import { startNats, type TestNats } from "../../support/nats/nats-server.ts";

const users = `
authorization {
  users = [
    { user: engine, password: engine }
    { user: mallory, password: mallory, permissions: { publish: ["orchestrations.mine.>"], subscribe: ["_INBOX.>"] } }
  ]
}`;

const names = subjects();
let nats: TestNats;
let bus: Bus;
let client: Client;
let mallory: NatsConnection;

beforeAll(async () => {
  nats = await startNats({ extraConfig: users });
  bus = await connectBus({ url: nats.url, user: "engine", pass: "engine", announce: silent });
  await ensureTopology(bus, names, { ...defaultTopology, historyShards: 1 });
  client = new Client({ bus, names });
  mallory = await connect({ servers: nats.url, user: "mallory", pass: "mallory" });
});

afterAll(async () => {
  await mallory?.close();
  await bus?.close();
  await nats?.stop();
});

const waiting = async (id: string) =>
  ((await bus.read(names.inboxStream, names.inboxOf(id))) ?? []).map(({ subject }) =>
    names.published(subject),
  );

async function attack(more: Record<string, string>): Promise<"stored" | "refused"> {
  const wire = headers();
  for (const [name, value] of Object.entries(more)) wire.set(name, value);
  try {
    await jetstream(mallory).publish("orchestrations.mine.signal.x", "", { headers: wire });
    return "stored";
  } catch {
    return "refused";
  }
}

it("cannot erase the inbox with a roll-up", async () => {
  await client.start("order", {}, { id: "before" });
  expect(await attack({ "Nats-Rollup": "all" })).toBe("refused");
  expect(await waiting("before")).toEqual(["orchestrations.before.start.order"]);
});

it("cannot terminate another's instance with a schedule", async () => {
  await client.start("order", {}, { id: "victim" });
  const at = new Date(Date.now() - 1000).toISOString();
  const schedule = {
    "Nats-Schedule": `@at ${at}`,
    "Nats-Schedule-Target": "orchestrations.victim.terminate",
  };
  expect(await attack(schedule)).toBe("refused");
  expect(await attack({ "Nats-Scheduler": "alarms.victim.1.2", "Nats-Schedule-Next": "purge" })).toBe(
    "refused",
  );
  expect(await waiting("victim")).toEqual(["orchestrations.victim.start.order"]);
});

it("cannot let messages expire", async () => {
  expect(await attack({ "Nats-TTL": "1s" })).toBe("refused");
});

it("cannot suppress another's start with its message id", async () => {
  expect(await attack({ "Nats-Msg-Id": "start-order-42" })).toBe("stored");
  await client.start("order", {}, { id: "order-42" });
  expect(await waiting("order-42")).toEqual(["orchestrations.order-42.start.order"]);
  await client.start("order", {}, { id: "twice" });
  await client.start("order", {}, { id: "twice" });
  expect(await waiting("twice"), "a true duplicate is one").toHaveLength(1);
});

it("cannot have the server's answer sent as a message of another's instance", async () => {
  await client.start("order", {}, { id: "answered" });
  mallory.publish("orchestrations.mine.signal.x", "", { reply: "orchestrations.answered.terminate" });
  await mallory.flush();
  await expect.poll(() => waiting("answered")).toHaveLength(2); // subject permissions do not stop it
  const [, forged] = (await bus.read(names.inboxStream, names.inboxOf("answered"))) ?? [];
  expect(forged && parseInbox(names, forged)).toMatchObject({ kind: "refused", code: "server_answer" });
});

it("cannot have a service's answer sent as a message of another's instance", async () => {
  await client.start("order", {}, { id: "spared" });
  const asked = new Promise<boolean>((resolve) => {
    void bus.subscribe("orchestrations.mine.ask", {}, (message) => resolve(message.reply !== undefined));
  });
  await bus.flush();
  mallory.publish("orchestrations.mine.ask", "", { reply: "orchestrations.spared.terminate" });
  expect(await asked).toBe(false);
});

it("cannot suppress a signal or a report with its message id", async () => {
  await client.start("order", {}, { id: "paid" });
  await attack({ "Nats-Msg-Id": "signal-paid-m1" });
  await client.signal("paid", "go", 1, { messageId: "m1" });
  await attack({ "Nats-Msg-Id": "lost-s1-1" });
  await publishAnew(bus, systemRandom, names.verb("paid", "session"), encode({}), {
    msgId: "lost-s1-1",
    original: inInbox(names, "paid"),
  });
  expect(await waiting("paid")).toEqual([
    "orchestrations.paid.start.order",
    "orchestrations.paid.signal.go",
    "orchestrations.paid.session",
  ]);
});
