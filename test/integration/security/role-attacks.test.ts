/** What somebody does with the key of one role, by a raw connection, against what the role may not do. */
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Bus,
  connectBus,
  defaultTopology,
  encode,
  ensureTopology,
  overlap,
  subjects,
} from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { permissionsOf, type RoleName, type Scope } from "../../../shared/security/index.ts";
import { rawClient } from "../../support/nats/raw-client.ts";
import { type SecuredNats, startSecuredNats } from "../../support/nats/secured-nats.ts";

const names = subjects();
const narrowed: Scope = { orchestrations: ["demo"] };
let secured: SecuredNats;
let bus: Bus;

beforeAll(async () => {
  secured = await startSecuredNats({ scopes: { client: narrowed } });
  bus = await connectBus({ ...secured.tester, announce: silent });
  await ensureTopology(bus, names, { ...defaultTopology, historyShards: 1 });
});
afterAll(async () => {
  await bus?.close();
  await secured?.nats.stop();
});

const inboxOf = async (id: string) =>
  ((await bus.read(names.inboxStream, names.inboxOf(id))) ?? []).map(({ subject }) =>
    names.published(subject),
  );

describe("SEC-6: a right to answer is a right to publish wherever the question says", () => {
  it.each<Scope>([{}, { group: "gpu", activities: [{ queue: "q", name: "n" }], sessionTypes: ["model"] }])(
    "so a worker publishes to no subject that a worker hears, %o",
    (scope) => {
      const { publish } = permissionsOf("worker", names, scope);
      const heard = permissionsOf("worker", names).subscribe.allow;
      expect(publish.allow.filter((one) => heard.some((other) => overlap(one, other)))).toEqual([]);
    },
  );

  it.each(["nudge.w1", "offers.w1.model", "control.w1", "lanes.seekers", "cancels", "_INBOX_worker.x"])(
    "and cannot ask itself on %s to be allowed an entry of a history",
    async (heard) => {
      await using worker = await rawClient(secured, "worker");
      worker.nc.subscribe(heard, { callback: () => undefined });
      await worker.nc.flush();
      worker.nc.publish(heard, "", { reply: "history.0.victim" });
      await worker.nc.flush();
      worker.nc.publish("history.0.victim", "{}");
      await worker.nc.flush();
      await expect.poll(() => [...worker.refused]).toContain("history.0.victim");
      expect(await bus.last(names.sharedHistoryStream(0), "history.0.victim")).toBeUndefined();
    },
  );
});

it.each<RoleName>(["worker", "gateway"])("a %s can keep no expired lease from the watcher", async (role) => {
  await using thief = await rawClient(secured, role);
  const calls = ["watcher", "watcher_beats"].flatMap((consumer) => [
    `$JS.API.CONSUMER.CREATE.KV_leases.${consumer}.$KV.leases.nothing`,
    `$JS.API.CONSUMER.CREATE.KV_leases.${consumer}`,
    `$JS.API.CONSUMER.DURABLE.CREATE.KV_leases.${consumer}`,
    `$JS.API.CONSUMER.DELETE.KV_leases.${consumer}`,
    `$JS.API.CONSUMER.MSG.NEXT.KV_leases.${consumer}`,
    `$JS.API.CONSUMER.PAUSE.KV_leases.${consumer}`,
    `$JS.ACK.KV_leases.${consumer}.1.2.3.4.5`,
  ]);
  for (const call of calls) thief.nc.publish(call, "{}");
  await thief.nc.flush();
  await expect.poll(() => [...thief.refused].sort()).toEqual(calls.sort());
});

it("a client of some orchestrations cannot have the engine's keepers start others", async () => {
  await using client = await rawClient(secured, "client");
  const orders = [
    names.signal("flow-3", "flow"),
    names.signal("schedule-nightly", "schedule"),
    names.signal("pool-gpu", "pool"),
    names.signal("keyed-1", "pool"),
    names.start("other-1", "other"),
    names.start("flow-3", "holdfast-flow"),
  ];
  for (const order of orders) client.nc.publish(order, encode({ kind: "start", orchestration: "other" }));
  client.nc.publish(names.signal("mine", "go"), "{}");
  await client.nc.flush();
  await expect.poll(() => [...client.refused].sort()).toEqual(orders.sort());
  expect(await inboxOf("mine")).toEqual([names.signal("mine", "go")]);
});

it.each<RoleName>(["worker", "client"])(
  "a %s has no trace of a message sent to another's instance",
  async (role) => {
    await using tracer = await rawClient(secured, role);
    const wire = headers();
    wire.set("Nats-Trace-Dest", names.verb("traced", "terminate"));
    const mine = role === "client" ? names.signal("mine", "go") : names.verb("mine", "activity");
    await jetstream(tracer.nc)
      .publish(mine, "{}", { headers: wire })
      .catch(() => undefined);
    await tracer.nc.flush();
    await bus.flush();
    expect(await inboxOf("traced")).toEqual([]);
  },
);
