/**
 * The permissions of a worker, narrowed to the activities, pools and session types of its group.
 *
 * SEC-6 A worker publishes to no subject that a worker hears. Whoever may answer may publish once to whatever subject a
 *    question names: a worker that could ask itself would be allowed every subject of the account.
 */
import { poolSignal } from "../../schemas/index.ts";
import { lettersOfWorkers } from "../bus/index.ts";
import { beacon, blobs, fleet, type Grant, type Scope } from "./grants.ts";
import {
  entry,
  kv,
  listConsumers,
  look,
  read,
  removeConsumer,
  self,
  take,
  view,
} from "./jetstream-subjects.ts";

/**
 * Calls that wait are taken from a consumer whose name only its worker knows (SEC-5): subjects of the stream name the
 * worker, and a permission cannot name part of a name.
 */
const calls = (types: readonly string[]): Grant => ({
  why: "takes calls on its sessions",
  publish: [...take("{_}SESSIONS", "*", "{.}sessions.*.*"), removeConsumer("{_}SESSIONS", "*")],
  subscribe: [...types.map((type) => `{.}sessions.*.*.calls.${type}`), "{.}lanes.sessions.*.*"],
});

export function workerGrants({ activities, pools, sessionTypes }: Scope): Grant[] {
  const tasks = activities?.map(({ queue, name }) => ({
    consumer: `a_${queue}=${name}`,
    subject: `${queue}.${name}`,
  })) ?? [{ consumer: "*", subject: "*.*" }];
  const shared = pools?.map((pool) => ({ consumer: `p_${pool}`, subject: `pool-${pool}.*` })) ?? [];
  return [
    { why: "asks the server, and checks that everything is there", publish: [...self, ...look("*")] },
    {
      why: "takes tasks",
      publish: [
        ...[...tasks, ...shared].flatMap(({ consumer, subject }) =>
          take("{_}ACTIVITIES", consumer, `{.}activities.${subject}`),
        ),
        ...listConsumers("{_}ACTIVITIES"),
      ],
      subscribe: tasks.flatMap(({ subject }) => [
        `{.}lanes.activities.${subject}`,
        `{.}lanes.workers.*.${subject}`,
      ]),
    },
    {
      why: "takes claims of sessions, has them passed to workers that fit better",
      publish: [
        ...(sessionTypes ?? ["*"]).flatMap((type) =>
          take("{_}CLAIMS", type === "*" ? "*" : `c_${type}`, `{.}claims.${type}.*`),
        ),
        ...(sessionTypes?.length === 0 ? [] : ["{.}passes.*"]),
      ],
      subscribe: (sessionTypes ?? ["*"]).map((type) => `{.}offers.*.${type}`),
    },
    ...(sessionTypes?.length === 0 ? [] : [calls(sessionTypes ?? ["*"])]),
    {
      why: "reports to instances, and to pools",
      publish: [
        "{.}orchestrations.*.activity",
        "{.}orchestrations.*.session",
        `{.}orchestrations.*.signal.${poolSignal}`,
        "{.}lanes.owners.*.*.*",
        ...lettersOfWorkers.map((kind) => `{.}dead.${kind}.*`),
      ],
    },
    { why: "streams of running code", publish: ["{.}streams.*.*.*"] },
    {
      why: "receives messages of the lane, cancels, claims to look at, drains",
      subscribe: [
        "{.}lanes.holdings.*",
        "{.}lanes.recordings.*",
        "{.}lanes.seekers",
        "{.}cancels",
        "{.}nudge.*",
        "{.}control.*",
      ],
    },
    {
      why: "leases of its sessions, seats and beats",
      publish: [
        entry("leases", "session.*.*"),
        entry("leases", "quota.>"),
        entry("leases", "beat.>"),
        ...view(kv("leases")),
      ],
    },
    {
      why: "heartbeats, rates, the register of workers and sessions",
      publish: [
        entry("heartbeats", ">"),
        ...read(kv("heartbeats")),
        entry("limits", ">"),
        ...read(kv("limits")),
        entry("workers", "*"),
        ...read(kv("sessions")),
      ],
    },
    { why: "big values", publish: [...blobs.write, ...blobs.read] },
    fleet,
    beacon,
  ];
}
