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
  says: string;
  /** The role answers requests: it may publish one reply to the requester's inbox. */
  answers: boolean;
  grants: (scope: Scope) => readonly Grant[];
  /** Subjects excluded from what the rows allow. */
  never?: (scope: Scope) => readonly string[];
}

/** The watcher's consumers: whoever took expired leases from them, or changed what they deliver, would hide a death. */
const ofWatcher = ["watcher", "watcher_beats"].flatMap((consumer) => [
  `$JS.API.CONSUMER.*.KV_{_}leases.${consumer}`,
  `$JS.API.CONSUMER.MSG.NEXT.KV_{_}leases.${consumer}`,
  `$JS.API.CONSUMER.CREATE.KV_{_}leases.${consumer}.>`,
  `$JS.API.CONSUMER.DURABLE.CREATE.KV_{_}leases.${consumer}`,
]);

const keeperSignals = [flowSignal, poolSignal, scheduleSignal];

export const roles: Readonly<Record<RoleName, Role>> = {
  provisioner: {
    says: "makes streams and buckets (`holdfast provision`), then ends",
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
    says: "runs turns: decides everything, and alone writes histories, work and timers",
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
      { why: "tells instances", publish: ["{.}orchestrations.*.>"] },
      { why: "sets timers", publish: ["{.}alarms.*.*.*", ...remove("{_}TIMERS")] },
      {
        why: "sends work, and takes back what a dead worker had",
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
        why: "holds partitions, and sees who else does",
        publish: [entry("engine", "partition.*"), entry("engine", "member.*"), ...view(kv("engine"))],
      },
      {
        why: "registers sessions and instances, and takes dead workers out",
        publish: [
          entry("sessions", "*"),
          entry("instances", "*"),
          entry("workers", "*"),
          ...view(kv("sessions"), kv("instances"), kv("leases")),
        ],
      },
      { why: "notes what is parked", publish: [entry("settings", ">"), ...view(kv("settings"))] },
      {
        why: "sets messages aside, buries them",
        publish: ["{.}aside.*", ...remove("{_}ASIDE"), "{.}dead.*.*"],
      },
      { why: "big values", publish: [...blobs.write, ...blobs.read] },
      {
        why: "tells those who wait, and answers them",
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
    says: "runs users' code: takes work, reports it, holds sessions",
    answers: true,
    grants: workerGrants,
    never: () => ofWatcher,
  },

  watcher: {
    says: "tells instances what is lost, clears away what is over",
    answers: false,
    grants: ({ ownHistories }) => [
      { why: "asks the server, and checks that everything is there", publish: [...self, ...look("*")] },
      { why: "one acts", publish: [entry("engine", "service.*"), ...read(kv("engine"))] },
      {
        why: "hears of leases that are over",
        publish: [
          ...view(kv("leases")),
          ...take(kv("leases"), "*", ">"),
          entry("leases", ">"),
          ...purge(kv("leases")),
        ],
      },
      {
        why: "tells instances",
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
        why: "removes what is over",
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
    says: "serves people: HTTP, the dashboard, the command line",
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
    says: "starts orchestrations and asks how they stand, from outside",
    answers: false,
    // The engine's keepers start whatever they are told to: a client of some orchestrations tells them nothing.
    never: ({ orchestrations }) =>
      orchestrations ? keeperSignals.map((signal) => `{.}orchestrations.*.signal.${signal}`) : [],
    grants: ({ orchestrations = ["*"] }) => [
      { why: "starts", publish: orchestrations.map((name) => `{.}start.${name}`) },
      {
        why: "asks, and waits",
        publish: [
          "{.}status.*",
          "{.}result.*",
          "{.}query.*.*",
          "{.}update.*.*",
          "{.}call.*.*.*",
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
