/**
 * The permissions of every role as data: one row for each thing a role does, with the reason. The server's
 * configuration, the test of everything forbidden and the tables of docs/security.md are generated from it.
 */

import { flowSignal, poolSignal, scheduleSignal } from "../../schemas/index.ts";
import { anyHistory, beacon, blobs, fleet, type Grant, ownStreams, type Scope } from "./grants.ts";
import {
  entry,
  kv,
  listConsumers,
  look,
  purge,
  read,
  remove,
  removeConsumer,
  self,
  take,
  view,
} from "./jetstream-subjects.ts";
import { workerGrants } from "./worker-grants.ts";

export const roleNames = ["provisioner", "orchestrator", "worker", "watcher", "gateway", "client"] as const;
export type RoleName = (typeof roleNames)[number];

export interface Role {
  /** What the role does, for the documents. */
  summary: string;
  /** The role answers requests: it may publish one reply to the requester's inbox. */
  answers: boolean;
  grants: (scope: Scope) => readonly Grant[];
  /** Subjects excluded from what the rows allow. */
  never?: (scope: Scope) => readonly string[];
}

/** The watcher's consumers: a client that took expired leases from them, or changed them, would hide a death. */
const ofWatcher = ["watcher", "watcher_beats"].flatMap((consumer) => [
  `$JS.API.CONSUMER.*.KV_{_}leases.${consumer}`,
  `$JS.API.CONSUMER.MSG.NEXT.KV_{_}leases.${consumer}`,
  `$JS.API.CONSUMER.CREATE.KV_{_}leases.${consumer}.>`,
  `$JS.API.CONSUMER.DURABLE.CREATE.KV_{_}leases.${consumer}`,
]);

const keeperSignals = [flowSignal, poolSignal, scheduleSignal];

export const roles: Readonly<Record<RoleName, Role>> = {
  provisioner: {
    summary: "makes streams and buckets (`holdfast provision`), then ends",
    answers: false,
    grants: () => [
      { why: "asks the server", publish: self },
      {
        why: "makes what is missing, and adds what a newer version needs",
        publish: ["$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.UPDATE.*", "$JS.API.STREAM.INFO.*"],
      },
    ],
  },

  orchestrator: {
    summary: "runs turns: decides everything, and alone writes histories, work and timers",
    answers: true,
    grants: ({ ownHistories }) => [
      { why: "asks the server, and checks that everything is there", publish: [...self, ...look("*")] },
      { why: "writes histories", publish: ["{.}history.>", ...anyHistory, ...purge("*")] },
      ...(ownHistories ? [ownStreams] : []),
      {
        why: "takes messages of its partitions",
        publish: [
          ...take("{_}INBOX", "*", "{.}inbox.*.>"),
          removeConsumer("{_}INBOX", "*"),
          ...remove("{_}INBOX"),
        ],
      },
      { why: "sends messages to instances", publish: ["{.}orchestrations.*.>"] },
      { why: "sets timers", publish: ["{.}alarms.*.*.*", ...remove("{_}TIMERS")] },
      {
        why: "sends work, and takes back the work of dead workers",
        publish: [
          "{.}activities.*.*",
          "{.}retries.>",
          ...remove("{_}ACTIVITIES"),
          ...listConsumers("{_}ACTIVITIES"),
          "$JS.API.CONSUMER.INFO.{_}ACTIVITIES.*",
          "$JS.ACK.{_}ACTIVITIES.*.>",
          "{.}claims.*.*",
          ...remove("{_}CLAIMS"),
          "{.}sessions.*.*",
          "{.}sessions.*.*.calls.*",
          "{.}delayed.>",
          ...remove("{_}SESSIONS"),
          "{.}cancels",
          "{.}nudge.*",
          "{.}offers.*.*",
        ],
      },
      {
        why: "the lane",
        publish: ["{.}lanes.>"],
        subscribe: ["{.}lanes.owners.*.*.*", "{.}lanes.keepers.*", "{.}lanes.holders.*"],
      },
      {
        why: "holds partitions, and sees the other holders",
        publish: [entry("engine", "partition.*"), entry("engine", "member.*"), ...view(kv("engine"))],
      },
      {
        why: "registers sessions and instances, and removes dead workers",
        publish: [
          entry("sessions", "*"),
          entry("instances", "*"),
          entry("workers", "*"),
          ...view(kv("sessions"), kv("instances"), kv("leases")),
        ],
      },
      { why: "records parked instances", publish: [entry("settings", ">"), ...view(kv("settings"))] },
      {
        why: "sets messages aside, writes dead letters",
        publish: ["{.}aside.*", ...remove("{_}ASIDE"), "{.}dead.*.*"],
      },
      { why: "big values", publish: [...blobs.write, ...blobs.read] },
      {
        why: "notifies waiting clients, and answers requests",
        publish: ["{.}notices.*.*", "{.}answers.*.*"],
        subscribe: [
          "{.}start.*",
          "{.}status.*",
          "{.}result.*",
          "{.}schedule.*",
          "{.}session.*.*",
          "{.}call.*.*.*",
          "{.}query.*.*",
          "{.}update.*.*",
          "{.}notices.*.*",
          "{.}answers.*.*",
          "{.}check.stream",
          "{.}passes.*",
          "$SRV.>",
        ],
      },
      fleet,
      beacon,
    ],
  },

  worker: {
    summary: "runs users' code: takes work, reports it, holds sessions",
    answers: true,
    grants: workerGrants,
    never: () => ofWatcher,
  },

  watcher: {
    summary: "reports losses to instances, and removes what has ended",
    answers: false,
    grants: ({ ownHistories }) => [
      { why: "asks the server, and checks that everything is there", publish: [...self, ...look("*")] },
      { why: "takes the lead", publish: [entry("engine", "service.*"), ...read(kv("engine"))] },
      {
        why: "receives expired leases",
        publish: [
          ...view(kv("leases")),
          ...take(kv("leases"), "*", ">"),
          entry("leases", ">"),
          ...purge(kv("leases")),
        ],
      },
      {
        why: "removes entries that have outlived their time to live",
        publish: [
          ...[entry("engine", ">"), entry("workers", "*"), entry("services", ">"), entry("limits", ">")],
          ...read(kv("limits")),
        ],
      },
      {
        why: "reports to instances",
        publish: [
          "{.}orchestrations.*.session",
          "{.}orchestrations.*.activity",
          "{.}orchestrations.*.wake",
          "{.}dead.*.*",
        ],
      },
      { why: "archives and removes histories", publish: ["{.}history.>", ...anyHistory, ...purge("*")] },
      ...(ownHistories ? [ownStreams] : []),
      {
        why: "removes what has ended",
        publish: [
          ...remove("{_}INBOX", "{_}TIMERS", "{_}ACTIVITIES", "{_}CLAIMS", "{_}SESSIONS"),
          ...listConsumers("{_}SESSIONS"),
          removeConsumer("{_}SESSIONS", "*"),
          entry("instances", "*"),
          entry("sessions", "*"),
          entry("settings", ">"),
          ...view(kv("instances"), kv("sessions"), kv("settings"), kv("heartbeats")),
          entry("heartbeats", ">"),
          ...blobs.write,
          ...blobs.read,
        ],
      },
      fleet,
      beacon,
    ],
  },

  gateway: {
    summary: "serves people: HTTP, the dashboard, the command line",
    answers: true,
    never: () => ofWatcher,
    grants: () => [
      { why: "asks the server, and checks that everything is there", publish: [...self, ...look("*")] },
      {
        why: "starts and steers instances",
        publish: [
          "{.}orchestrations.*.start.*",
          "{.}orchestrations.*.signal.*",
          "{.}orchestrations.*.update.*",
          "{.}orchestrations.*.cancel",
          "{.}orchestrations.*.terminate",
          "{.}alarms.*.0.0",
          "{.}query.*.*",
        ],
        subscribe: ["{.}notices.*.*", "{.}answers.*.*"],
      },
      {
        why: "steers sessions and workers",
        publish: ["{.}sessions.*.*", "{.}sessions.*.*.calls.*", "{.}lanes.holdings.*", "{.}control.*"],
        subscribe: ["{.}lanes.owners.*.*.*"],
      },
      {
        why: "shows everything",
        publish: [
          ...anyHistory,
          "$JS.API.CONSUMER.LIST.*",
          ...view(
            ...[
              "engine",
              "leases",
              "workers",
              "services",
              "sessions",
              "instances",
              "settings",
              "heartbeats",
              "limits",
            ].map(kv),
            "{_}STREAMS",
            "{_}DEAD",
            "{_}AUDIT",
            // A permission cannot name part of a stream name, and there are many histories.
            "*",
          ),
          ...blobs.read,
          "{.}check.stream",
        ],
        subscribe: ["{.}pulse"],
      },
      {
        why: "dead letters: sends them again, or removes them",
        publish: [
          ...remove("{_}DEAD"),
          "{.}activities.*.*",
          "{.}claims.*.*",
          "{.}orchestrations.*.activity",
          "{.}orchestrations.*.session",
          "{.}orchestrations.*.child",
          "{.}orchestrations.*.wake",
        ],
      },
      {
        why: "audit, settings, big inputs",
        publish: ["{.}audit.*", entry("settings", ">"), ...purge(kv("settings")), ...blobs.write],
      },
      {
        why: "answers plain NATS clients",
        publish: [
          "{.}start.*",
          "{.}status.*",
          "{.}result.*",
          "{.}schedule.*",
          "{.}session.*.*",
          "{.}call.*.*.*",
          "{.}update.*.*",
          "$SRV.>",
        ],
        subscribe: ["{.}start.*", "{.}status.*", "{.}result.*", "{.}schedule.*", "{.}update.*.*", "$SRV.>"],
      },
      fleet,
      beacon,
    ],
  },

  client: {
    summary: "starts orchestrations and asks how they stand, from outside",
    answers: false,
    // The engine's keepers start any orchestration: a client of some orchestrations may not signal them.
    never: ({ orchestrations }) =>
      orchestrations ? keeperSignals.map((signal) => `{.}orchestrations.*.signal.${signal}`) : [],
    grants: ({ orchestrations = ["*"], sessionTypes = orchestrations.includes("*") ? ["*"] : [] }) => [
      { why: "starts", publish: orchestrations.map((name) => `{.}start.${name}`) },
      {
        why: "asks, and waits",
        publish: [
          "{.}status.*",
          "{.}result.*",
          "{.}query.*.*",
          "{.}update.*.*",
          ...sessionTypes.map((type) => `{.}call.${type}.*.*`),
          "$SRV.PING",
          "$SRV.INFO",
          "$SRV.STATS",
        ],
      },
      {
        why: "starts and signals without waiting for an orchestrator",
        publish: [
          ...orchestrations.map((name) => `{.}orchestrations.*.start.${name}`),
          "{.}orchestrations.*.signal.*",
        ],
      },
    ],
  },
};
