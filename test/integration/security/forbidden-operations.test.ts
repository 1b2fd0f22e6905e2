/**
 * Every role tries everything with a raw NATS client: every subject of the installation, every verb of the JetStream API
 * on every stream. What the server lets it do is what docs/security.md says, no less and no more.
 */
import { readFileSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  connectBus,
  defaultTopology,
  ensureTopology,
  matches,
  subjects,
  topology,
} from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import {
  headerReach,
  headerTable,
  mayPublish,
  maySubscribe,
  permissionsInTables,
  permissionsOf,
  type RoleName,
  roleNames,
  roleTables,
  type Scope,
} from "../../../shared/security/index.ts";
import { rawClient } from "../../support/nats/raw-client.ts";
import { type SecuredNats, startSecuredNats } from "../../support/nats/secured-nats.ts";

const names = subjects();
const options = { ...defaultTopology, historyShards: 2 };
const document = readFileSync(new URL("../../../docs/security.md", import.meta.url), "utf8");
const specs = topology(names, options);
const streams = [...specs.map(({ name }) => name), "H_i1", "SOMEBODYS"];

const streamVerbs = [
  ...["CREATE", "UPDATE", "DELETE", "INFO", "PURGE", "SNAPSHOT", "RESTORE", "MSG.GET", "MSG.DELETE"],
  ...["PEER.REMOVE", "LEADER.STEPDOWN"],
].map((verb) => `STREAM.${verb}`);
const consumerVerbs = ["DELETE", "INFO", "MSG.NEXT", "PAUSE", "RESET", "UNPIN", "LEADER.STEPDOWN"];
const consumers = ["a_q=n", "c_t", "w_1", "p_1", "p3", "watcher", "watcher_beats", "t_1"];

/** One of each kind of subject the engine publishes to or listens on. */
const plain = [
  ...[
    "start.demo",
    "signal.go",
    "signal.pool",
    "update.set",
    "cancel",
    "terminate",
    "activity",
    "child",
    "session",
    "wake",
  ].map((verb) => `orchestrations.i1.${verb}`),
  ...["alarms.i1.1.2", "alarms.i1.0.0", "fired.i1.wake", "inbox.3.i1.cancel", "history.i1", "history.1.i1"],
  ...[
    "activities.q.n",
    "activities.pool-p.call",
    "retries.i1.1.2.1",
    "claims.t.s1",
    "sessions.w1.s1",
    "delayed.i1.1.2.1",
  ],
  ...[
    "sessions.w1.s1.calls.t",
    "streams.i1.1.2",
    "check.stream",
    "dead.inbox.i1",
    "dead.activity.i1",
    "aside.i1",
    "audit.start",
    "pulse",
    "nudge.w1",
    "offers.w1.t",
    "passes.w1",
    "cancels",
  ],
  ...["notices.i1.changed", "notices.i1.ended", "control.w1", "lanes.activities.q.n", "lanes.sessions.w1.s1"],
  ...[
    "lanes.owners.o1.i1.report",
    "lanes.owners.o1.i1.returned",
    "lanes.recordings.w1",
    "lanes.holdings.w1",
    "lanes.seekers",
    "lanes.keepers.flow-1",
    "lanes.holders.o1",
  ],
  ...["start.demo", "status.i1", "result.i1", "schedule.s1", "query.i1.q", "update.i1.u", "answers.i1.u1"],
  ...["call.t.k.n", "session.t.k", "$SRV.PING", "$SRV.INFO.holdfast", "somebodys.subject"],
  ...[
    "$O.blobs.C.1",
    "$O.blobs.M.1",
    "$SYS.REQ.USER.INFO",
    "$SYS.REQ.SERVER.PING",
    "_INBOX.x",
    "_INBOX_gateway.x",
  ],
  ...["partition.1", "member.o1", "service.watcher"].map((key) => `$KV.engine.${key}`),
  ...["session.s1.1", "quota.all.1", "beat.i1.1.2.1.n.5", "partition.1", "service.watcher"].map(
    (key) => `$KV.leases.${key}`,
  ),
  ...[
    "workers.w1",
    "services.orchestrator.o1",
    "instances.i1",
    "sessions.s1",
    "heartbeats.i1.1.2",
    "limits.k",
    "settings.parked.i1",
  ].map((key) => `$KV.${key}`),
];

const calls = [
  ...[
    "INFO",
    "STREAM.NAMES",
    "STREAM.LIST",
    "SERVER.REMOVE",
    "META.LEADER.STEPDOWN",
    "ACCOUNT.PURGE.HOLDFAST",
  ],
  ...streams.flatMap((stream) => [
    ...streamVerbs.map((verb) => `${verb}.${stream}`),
    `DIRECT.GET.${stream}`,
    `DIRECT.GET.${stream}.any.subject`,
    `CONSUMER.CREATE.${stream}`,
    `CONSUMER.CREATE.${stream}.t_1`,
    ...["t_1", "watcher"].map((consumer) => `CONSUMER.CREATE.${stream}.${consumer}.any.filter`),
    `CONSUMER.DURABLE.CREATE.${stream}.t_1`,
    `CONSUMER.NAMES.${stream}`,
    `CONSUMER.LIST.${stream}`,
    ...consumers.flatMap((consumer) => consumerVerbs.map((verb) => `CONSUMER.${verb}.${stream}.${consumer}`)),
  ]),
].map((call) => `$JS.API.${call}`);
const acknowledgements = streams.flatMap((stream) =>
  consumers.map((consumer) => `$JS.ACK.${stream}.${consumer}.1.2.3.4.5`),
);
/** One subject of each right that any role has, or is denied: whoever adds a right adds what all roles try. */
const ofRights = (of: (permissions: ReturnType<typeof permissionsOf>) => readonly string[]) =>
  roleNames.flatMap((role) =>
    of(permissionsOf(role, names)).map((one) => one.replaceAll("*", "any").replace(/>$/, "any.more")),
  );
const everything = [
  ...new Set([
    ...plain,
    ...calls,
    ...acknowledgements,
    ...ofRights(({ publish }) => [...publish.allow, ...publish.deny]),
  ]),
];
const everythingHeard = [...new Set([...plain, ...ofRights(({ subscribe }) => subscribe.allow)])];

let secured: SecuredNats;

beforeAll(async () => {
  secured = await startSecuredNats();
  const bus = await connectBus({ ...secured.connection("provisioner"), announce: silent });
  await ensureTopology(bus, names, options);
  await bus.close();
});

afterAll(() => secured?.nats.stop());

it("the tables of docs/security.md are what the code says; else run `npm run docs:security`", () => {
  expect(document).toContain(roleTables());
});

describe.each(roleNames)("%s", (role) => {
  const table = permissionsInTables(document, role);

  it("publishes what the document says, and nothing else", async () => {
    const { nc, refused } = await rawClient(secured, role);
    for (const subject of everything) nc.publish(subject, "");
    await nc.flush();
    await expect
      .poll(() => everything.filter((one) => refused.has(one) === mayPublish(table, one)))
      .toEqual([]);
    await nc.close();
  });

  it("hears what the document says, and nothing else", async () => {
    const { nc, refused } = await rawClient(secured, role);
    const heard = [
      ...everythingHeard,
      ">",
      "*.>",
      "_INBOX.>",
      "_INBOX_orchestrator.x",
      "_INBOX_client.x",
      "$JS.>",
      "$KV.>",
    ];
    for (const subject of heard) nc.subscribe(subject, { callback: () => undefined });
    await nc.flush();
    await expect.poll(() => heard.filter((one) => refused.has(one) === maySubscribe(table, one))).toEqual([]);
    await nc.close();
  });

  it("needs no right to everything of JetStream", () => {
    const { publish, subscribe } = permissionsOf(role, names);
    for (const wide of [">", "$JS.>", "$JS.API.>", "$JS.API.STREAM.>", "$JS.API.CONSUMER.>", "$KV.>"])
      expect([...publish.allow, ...subscribe.allow]).not.toContain(wide);
  });
});

/** Users for a part of the work: a group of workers, a client of one orchestration. */
const narrowed: Partial<Record<RoleName, Scope>> = {
  worker: { group: "gpu", activities: [{ queue: "q", name: "n" }], pools: ["1"], sessionTypes: [] },
  client: { orchestrations: ["demo"] },
};
const others = {
  worker: [
    "$JS.API.CONSUMER.MSG.NEXT.ACTIVITIES.a_q=other",
    "$JS.API.CONSUMER.CREATE.ACTIVITIES.a_q=other.activities.q.other",
    "$JS.API.CONSUMER.CREATE.ACTIVITIES.a_q=n.activities.>",
    "$JS.ACK.ACTIVITIES.a_q=other.1.2.3.4.5",
    "$JS.API.CONSUMER.MSG.NEXT.CLAIMS.c_t",
    "$JS.API.CONSUMER.MSG.NEXT.SESSIONS.w_1",
    "cancels",
    "lanes.recordings.w1",
    "lanes.activities.q.n",
  ],
  client: ["start.other", "orchestrations.i1.start.other"],
};

describe.each(["worker", "client"] as const)("a %s for a part of the work", (role) => {
  let part: SecuredNats;
  beforeAll(async () => {
    part = await startSecuredNats({ scopes: narrowed });
  });
  afterAll(() => part?.nats.stop());

  it("may do what its part needs, and nothing of the others'", async () => {
    const table = permissionsOf(role, names, narrowed[role]);
    for (const subject of others[role]) expect(mayPublish(table, subject), subject).toBe(false);
    const { nc, refused } = await rawClient(part, role);
    const all = [...everything, ...others[role]];
    for (const subject of all) nc.publish(subject, "");
    await nc.flush();
    await expect.poll(() => all.filter((one) => refused.has(one) === mayPublish(table, one))).toEqual([]);
    const heard = [
      ...everythingHeard,
      "lanes.activities.q.other",
      "_INBOX_worker.>",
      "_INBOX_worker_gpu.x",
      "_INBOX_client.x",
    ];
    refused.clear();
    for (const subject of heard) nc.subscribe(subject, { callback: () => undefined });
    await nc.flush();
    await expect.poll(() => heard.filter((one) => refused.has(one) === maySubscribe(table, one))).toEqual([]);
    expect(maySubscribe(table, "_INBOX_worker.>"), "what workers of other groups are told").toBe(false);
    expect(maySubscribe(table, "lanes.activities.q.other")).toBe(false);
    await nc.close();
  });
});

it("a worker of another group can forge no cancel, lane message, recording or task, and delete nothing", async () => {
  const bus = await connectBus({ ...secured.tester, announce: silent });
  const heard: string[] = [];
  const forged = [
    ...[names.cancels, names.laneOfRecordings("w1"), names.laneOfActivity("q", "n"), names.laneOfSeekers],
    ...[
      names.laneOfWorker("w1", "q", "n"),
      names.sessionCalls("t", "w1", "s1"),
      names.laneOfSession("w1", "s1"),
    ],
    ...[names.activity("q", "n"), names.sessionWork("w1", "s1"), names.claim("t", "s1")],
    ...[
      names.claimOffer("w1", "t"),
      names.nudge("w1"),
      names.workerControl("w1"),
      names.notice("i1", "ended"),
      names.timer("i1", 1, 2),
    ],
  ];
  for (const subject of forged)
    await bus.subscribe(subject, {}, ({ subject: seen }) => void heard.push(seen));
  await bus.flush();
  const { nc, refused } = await rawClient(secured, "worker");
  for (const subject of forged) nc.publish(subject, "{}");
  const deletions = streams.map((stream) => `$JS.API.STREAM.DELETE.${stream}`);
  for (const deletion of deletions) nc.publish(deletion, "");
  await nc.flush();
  await expect.poll(() => [...refused].sort()).toEqual([...forged, ...deletions].sort());
  await bus.flush();
  expect(heard).toEqual([]);
  expect(await bus.streamInfo(names.inboxStream)).toBeDefined();
  await nc.close();
  await bus.close();
});

it("a group of workers hears no calls of session types it does not serve, and cannot name others' consumers", async () => {
  const part = await startSecuredNats({ scopes: { worker: { group: "gpu", sessionTypes: ["model"] } } });
  const provisioner = await connectBus({ ...part.connection("provisioner"), announce: silent });
  await ensureTopology(provisioner, names, options);
  const { nc, refused } = await rawClient(part, "worker");
  const [own, other] = [names.sessionCalls("model", "w1", "s1"), names.sessionCalls("chat", "w2", "s2")];
  const offers = [names.claimOffer("w2", "chat"), "offers.*.*", "offers.>"];
  for (const subject of [
    own,
    names.claimOffer("w1", "model"),
    other,
    "sessions.*.*.calls.*",
    "sessions.>",
    ...offers,
  ])
    nc.subscribe(subject, { callback: () => undefined });
  await nc.flush();
  await expect
    .poll(() => [...refused].sort())
    .toEqual(["sessions.*.*.calls.*", other, "sessions.>", ...offers].sort());
  refused.clear();
  for (const verb of ["NAMES", "LIST"]) nc.publish(`$JS.API.CONSUMER.${verb}.${names.sessionsStream}`, "");
  await nc.flush();
  await expect.poll(() => refused.size, { message: "names of consumers are told to no worker" }).toBe(2);
  await nc.close();
  await provisioner.close();
  await part.nats.stop();
});

/** Another subject of the stream that the message lies in: a server takes no schedule for the message's own. */
const elsewhere: Record<string, string> = {
  activities: "activities.other.other",
  retries: "activities.other.other",
  sessions: "sessions.other.other",
  delayed: "sessions.other.other",
  alarms: "fired.other.wake",
};

it("the table of headers in docs/security.md is what the code says; else run `npm run docs:security`", () => {
  const one = topology(names, { ...defaultTopology, historyShards: 1 });
  expect(document).toContain(headerTable((role) => headerReach(permissionsOf(role, names), one)));
});

it.each(roleNames)("headers let the %s do what the table says, and nothing else", async (role) => {
  const { nc } = await rawClient(secured, role);
  const table = permissionsOf(role, names);
  const empties = new Set<string>();
  const schedules = new Set<string>();
  const lives = new Set<string>();
  const publish = async (subject: string, more: Record<string, string>): Promise<string[]> => {
    const wire = headers();
    for (const [name, value] of Object.entries(more)) wire.set(name, value);
    try {
      return [(await jetstream(nc).publish(subject, "{}", { headers: wire, timeout: 2000 })).stream];
    } catch {
      return [];
    }
  };
  const isStored = (subject: string) =>
    specs.some(({ subjects }) => subjects.some((one) => matches(one, subject)));
  for (const subject of everything.filter((one) => isStored(one) && mayPublish(table, one))) {
    const target = elsewhere[subject.split(".")[0] ?? ""] ?? "orchestrations.i2.terminate";
    const scheduled = { "Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": target };
    for (const stream of await publish(subject, { "Nats-Rollup": "all" })) empties.add(stream);
    for (const stream of await publish(subject, scheduled)) schedules.add(stream);
    for (const stream of await publish(subject, { "Nats-TTL": "5s" })) lives.add(stream);
  }
  await nc.close();
  expect({ empties: [...empties].sort(), schedules: [...schedules].sort() }).toEqual(
    headerReach(table, specs),
  );
  const expire = specs.filter(({ markerTtlMs, timesToLive }) => markerTtlMs !== undefined || timesToLive);
  expect(
    expire.map(({ name }) => name),
    "streams in which messages expire",
  ).toEqual(expect.arrayContaining([...lives]));
});

it("no role can reach a history, the inbox, claims, dead letters, the audit or streams by a header", () => {
  const reached = roleNames.flatMap((role) =>
    Object.values(headerReach(permissionsOf(role, names), specs)).flat(),
  );
  const safe = [
    names.inboxStream,
    names.claimsStream,
    names.streamsStream,
    names.deadStream,
    names.auditStream,
  ];
  const histories = [0, 1].map((shard) => names.sharedHistoryStream(shard));
  expect(reached.filter((one) => [...safe, ...histories].includes(one))).toEqual([]);
});
