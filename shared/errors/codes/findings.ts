import type { CodeGroup } from "./code-group.ts";

export const findings: CodeGroup = {
  title: "What doctor and the dashboard find",
  about: "not errors of a call: the state of the installation",
  codes: {
    server: {
      cause: "The server that answers, and its version.",
      remedy: "Upgrade nats-server where it is too old.",
    },
    clock: { cause: "The clock of this machine, compared with the server's.", remedy: "Run NTP." },
    clocks: {
      cause: "The clocks of the services, compared with the server's.",
      remedy: "Run NTP on their machines.",
    },
    server_clocks: {
      cause: "The clocks of the NATS servers, compared with each other.",
      remedy: "Run NTP on every NATS server.",
    },
    disk: { cause: "Room left for JetStream.", remedy: "Free disk space, or raise the limit." },
    limits: { cause: "Limits of the account.", remedy: "Raise those that are nearly reached." },
    max_payload: {
      cause: "The largest message the server takes.",
      remedy: "Raise max_payload for larger inline values.",
    },
    replicas: {
      cause: "Copies of each stream.",
      remedy: "Set NATS_REPLICAS, or repair the server that is behind.",
    },
    streams: {
      cause: "Streams that are missing or were changed.",
      remedy: "Start a service, which creates missing streams; restore settings that were changed.",
    },
    stream_limits: {
      cause: "Streams near their limits.",
      remedy: "Shorten the retention, or raise the limits.",
    },
    writes: {
      cause: "How long a durable write takes.",
      remedy: "A faster disk, or fewer instances on this server.",
    },
    orchestrators: {
      cause: "Orchestrators alive.",
      remedy: "Start one: `holdfast orchestrator --app <module>`.",
    },
    no_orchestrator: {
      cause: "No orchestrator is alive: nothing makes progress.",
      remedy: "Start one: `holdfast orchestrator --app <module>`.",
    },
    partitions: {
      cause: "Partitions with an owner.",
      remedy: "They move within one lease time; if it stays, look at the orchestrators' logs.",
    },
    partitions_unheld: {
      cause: "Some partitions have no owner.",
      remedy: "They move within one lease time; if it stays, look at the orchestrators' logs.",
    },
    watcher: { cause: "A watcher is alive and leads.", remedy: "Start one: `holdfast watcher`." },
    no_watcher: {
      cause: "No watcher is alive: sessions of workers that die are not reported lost.",
      remedy: "Start one: `holdfast watcher`.",
    },
    no_acting_watcher: { cause: "Watchers are alive and none leads yet.", remedy: "Wait one lease time." },
    workers: { cause: "Workers alive.", remedy: "Start one: `holdfast worker --app <module>`." },
    no_worker: {
      cause: "No worker is alive and tasks wait.",
      remedy: "Start one: `holdfast worker --app <module>`.",
    },
    worker_silent: {
      cause: "A worker has not renewed its entry for too long.",
      remedy: "Look at its machine; its sessions move when their leases expire.",
    },
    worker_stalled: {
      cause: "A worker's main thread is blocked.",
      remedy: "Find the long synchronous work; give the session type an `isolation`.",
    },
    queue: { cause: "Tasks that wait in a queue.", remedy: "Start more workers." },
    queue_long: {
      cause: "Many messages wait in a stream.",
      remedy: "Start more of the service that reads it.",
    },
    queue_unread: {
      cause: "Messages wait in a stream that no service reads.",
      remedy: "Start the service that reads it.",
    },
    activity_unserved: {
      cause: "Tasks wait for an activity no worker has.",
      remedy: "Start a worker whose application has it on this queue.",
    },
    session_unserved: {
      cause: "Sessions wait that no worker takes.",
      remedy: "`holdfast sessions explain <id>` says why each worker does not.",
    },
    sessions_lost: {
      cause: "Sessions were lost in the last minute.",
      remedy: "Look at the workers that held them.",
    },
    quotas: { cause: "Seats taken, compared with the quota.", remedy: "Raise the quota, or wait." },
    resource_shared: {
      cause: "Two workers share one resource.",
      remedy: "Give each worker a resource of its own.",
    },
    histories: { cause: "Room in the histories.", remedy: "Shorten the retention, or raise the limit." },
    parked: { cause: "Parked instances.", remedy: "Each says why; a fixed deployment resumes them." },
    instances_parked: {
      cause: "Parked instances.",
      remedy: "Each says why; a fixed deployment resumes them.",
    },
    dead_letters: {
      cause: "Dead letters that wait for a decision.",
      remedy: "`holdfast dead list` shows them: retry or discard.",
    },
    versions: { cause: "Versions alive.", remedy: "Finish the upgrade." },
    generation: { cause: "The generation of the wire that is written.", remedy: "Finish the upgrade." },
    generation_held_back: {
      cause: "An old version keeps the newer generation from being written.",
      remedy: "Finish the upgrade, or stop the old version.",
    },
    gateway_away: {
      cause: "The page has lost its connection to the gateway.",
      remedy: "It comes back by itself; check that the gateway runs.",
    },
  },
};
