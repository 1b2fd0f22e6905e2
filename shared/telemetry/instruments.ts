/** Every metric of a Holdfast process, by its stable name. Base units; labels never contain ids. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** From half a millisecond (a turn) to minutes (a model that loads). */
const short = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const long = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21_600, 86_400];

export type Instruments = ReturnType<typeof instruments>;

interface Probes {
  /** Read at each scrape. */
  eventLoopDelaySeconds(): number;
}

export function instruments(registry: Registry, probes: Probes) {
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name: `holdfast_${name}_total`, help, labelNames, registers });
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `holdfast_${name}`, help, labelNames, registers });
  const seconds = (name: string, help: string, labelNames: string[] = [], buckets = short) =>
    new Histogram({ name: `holdfast_${name}_seconds`, help, labelNames, buckets, registers });

  return {
    // orchestrations
    started: counter("orchestrations_started", "Instances that began an execution", ["name"]),
    closed: counter("orchestrations_closed", "Instances that ended", ["name", "status"]),
    duration: seconds("orchestration_duration", "From start to end of an instance", ["name", "status"], long),
    parked: counter("orchestrations_parked", "Instances set aside with a reason", ["code"]),
    nondeterminism: counter("nondeterminism", "Turns whose code disagreed with its history"),
    turn: seconds("turn_duration", "One turn, from its messages to its commit"),
    replayed: counter("replay_events", "Events read back to rebuild an instance"),
    append: seconds("history_append", "Appending one commit"),
    conflicts: counter("history_cas_conflicts", "Commits refused because another owner had committed"),
    ambiguous: counter("history_appends_ambiguous", "Appends not answered in time", ["landed"]),
    duplicates: counter("inbox_duplicates", "Messages seen before, recognised and dropped", ["verb"]),
    incapable: counter("capability_refused", "Messages refused: no capability, or not the right one", [
      "what",
      "why",
    ]),
    unproved: counter("capability_missing", "Messages without a capability that were believed"),
    late: counter("completions_late", "Completions of work that was already answered"),
    generation: gauge("generation_written", "Newest generation of messages that every live process can read"),
    partitions: gauge("partitions_held", "Partitions this process serves"),
    partitionsLost: counter("partitions_lost", "Partitions given up", ["why"]),
    // activities
    scheduleToStart: seconds(
      "activity_schedule_to_start",
      "From being scheduled to being begun",
      ["name"],
      long,
    ),
    execution: seconds("activity_execution", "One attempt of an activity", ["name", "outcome"], long),
    redeliveries: counter("activity_redeliveries", "Tasks delivered again", ["name"]),
    handedBack: counter("activity_handed_back", "Tasks given back untouched", ["why"]),
    expired: counter("activity_expired", "Tasks not run because their timeout had passed", [
      "name",
      "timeout",
    ]),
    poisoned: counter("activity_poisoned", "Tasks delivered too often", ["name"]),
    laneRecalled: counter("lane_recalled", "Tasks on the lane that went out again by the queue", ["why"]),
    // sessions
    sessionsActive: gauge("sessions_active", "Sessions this process holds", ["type"]),
    claims: counter("session_claims", "Claims seen, by their outcome", ["type", "verdict"]),
    attached: counter("session_attached", "Sessions taken, by how their state came about", ["type", "start"]),
    init: seconds("session_init", "Building a session's state", ["type"], long),
    initFailed: counter("session_init_failed", "Inits that failed", ["type"]),
    detached: counter("session_detached", "Sessions released", ["type", "why"]),
    call: seconds("session_call", "One call on a session", ["type", "name", "outcome"], long),
    callWait: seconds("session_call_wait", "From being handed to the holder to being begun", ["type"], long),
    lost: counter("session_lost", "Sessions reported lost to their instance", ["reason"]),
    lossDetection: seconds("session_lost_detection", "From the lease's expiry to the report"),
    fenced: counter("session_fenced", "Completions of an old epoch, dropped"),
    leaseRenewal: seconds("lease_renewal", "Renewing the leases of this process"),
    leasesLost: counter("leases_lost", "Leases that ended", ["why"]),
    // inference
    modelLoad: seconds("model_load", "Loading a model", ["model", "device"], long),
    modelBytes: gauge("model_bytes", "Size of a loaded model", ["model", "device"]),
    inference: seconds("inference", "Running one batch", ["type", "name"]),
    batchSize: new Histogram({
      name: "holdfast_batch_size",
      help: "Calls run together",
      labelNames: ["type", "name"],
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
      registers,
    }),
    // anything
    dead: counter("dead_letters", "Messages refused", ["what", "code"]),
    faults: counter("faults", "Faults announced", ["where", "code"]),
    busAway: counter("bus_disconnects", "Times the connection to NATS was lost"),
    busAwaySeconds: counter("bus_away_seconds", "Time without a connection to NATS"),
    busConnected: gauge("bus_connected", "1 while NATS can be reached"),
    acting: gauge("watcher_acting", "1 while this watcher acts"),
    eventLoopDelay: new Gauge({
      name: "holdfast_event_loop_delay_seconds",
      help: "99th percentile of the event loop's delay since the last look",
      registers,
      collect() {
        this.set(probes.eventLoopDelaySeconds());
      },
    }),
    build: gauge("build_info", "Always 1; its labels have version and service", ["version", "service"]),
  };
}
