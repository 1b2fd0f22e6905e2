/** The worker's settings: read once, checked whole, refused by name. */
import { Fault } from "../../shared/errors/index.ts";
import { type Environment, readSettings } from "./read-settings.ts";

export interface WorkerConfig {
  /** Absent: made for this process. */
  readonly nodeId: string | undefined;
  /** Absent: the host's name. */
  readonly resourceId: string | undefined;
  readonly buildId: string;
  readonly tags: readonly string[];
  readonly resources: Readonly<Record<string, number>>;
  readonly activities: {
    /** 0: this worker runs no plain activities. */
    readonly slots: number;
    /** Absent: every queue an activity of the application names. */
    readonly queues: readonly string[] | undefined;
    /** Absent: every activity of the application. */
    readonly only: readonly string[] | undefined;
    /** A task not heard of for so long goes to another worker. */
    readonly ackWaitMs: number;
    /** A task delivered more often than this is poison. */
    readonly maxDeliveries: number;
    /** What was pulled and found no slot for so long is given back for others to take. */
    readonly surplusWaitMs: number;
  };
  readonly sessions: {
    /** 0: this worker holds no sessions. */
    readonly max: number;
    /** Calls running at a time, over all sessions held. */
    readonly callSlots: number;
    /** Absent: every type of the application, and bare sessions. */
    readonly types: readonly string[] | undefined;
    /** Most sessions per type; precedence over the type's own `maxPerWorker`. */
    readonly maxPerType: Readonly<Record<string, number>>;
    /** Defaults for types and sessions that say nothing themselves. */
    readonly leaseTtlMs: number;
    readonly idleTimeoutMs: number;
    readonly maxInitMs: number;
  };
  readonly drainTimeoutMs: number;
  readonly registration: { readonly everyMs: number; readonly ttlMs: number };
}

const second = 1000;
const minute = 60 * second;

export function readConfig(env: Environment): WorkerConfig {
  const settings = readSettings(env, "WORKER_");
  const config: WorkerConfig = {
    nodeId: settings.token("WORKER_NODE_ID"),
    resourceId: settings.token("WORKER_RESOURCE_ID"),
    buildId: settings.text("WORKER_BUILD_ID") ?? "dev",
    tags: settings.tokens("WORKER_TAGS") ?? [],
    resources: settings.amounts("WORKER_RESOURCES"),
    activities: {
      slots: settings.count("WORKER_ACTIVITY_SLOTS", { fallback: 100, min: 0, max: 100_000 }),
      queues: settings.tokens("WORKER_QUEUES"),
      only: settings.tokens("WORKER_ACTIVITIES"),
      ackWaitMs: settings.duration("WORKER_ACK_WAIT", {
        fallback: 10 * second,
        min: second,
        max: 10 * minute,
      }),
      maxDeliveries: settings.count("WORKER_MAX_DELIVERIES", { fallback: 5, min: 1, max: 1000 }),
      surplusWaitMs: settings.duration("WORKER_SURPLUS_WAIT", { fallback: 500, min: 10, max: 10 * second }),
    },
    sessions: {
      max: settings.count("WORKER_MAX_SESSIONS", { fallback: 32, min: 0, max: 100_000 }),
      callSlots: settings.count("WORKER_CALL_SLOTS", { fallback: 100, min: 1, max: 100_000 }),
      types: settings.tokens("WORKER_SESSION_TYPES"),
      maxPerType: settings.amounts("WORKER_MAX_PER_TYPE"),
      leaseTtlMs: settings.duration("WORKER_LEASE_TTL", {
        fallback: 15 * second,
        min: second,
        max: 60 * minute,
        wholeSeconds: true,
      }),
      idleTimeoutMs: settings.duration("WORKER_IDLE_TIMEOUT", {
        fallback: 5 * minute,
        min: 0,
        max: 30 * 24 * 60 * minute,
      }),
      maxInitMs: settings.duration("WORKER_MAX_INIT", {
        fallback: 10 * minute,
        min: second,
        max: 24 * 60 * minute,
      }),
    },
    drainTimeoutMs: settings.duration("WORKER_DRAIN_TIMEOUT", {
      fallback: 30 * second,
      min: 0,
      max: 60 * minute,
    }),
    registration: {
      everyMs: settings.duration("WORKER_REGISTER_EVERY", { fallback: 4 * second, min: 200, max: minute }),
      ttlMs: settings.duration("WORKER_REGISTER_TTL", {
        fallback: 15 * second,
        min: 2 * second,
        max: 10 * minute,
        wholeSeconds: true,
      }),
    },
  };
  settings.refuseUnknown();
  refuseContradictions(config);
  return Object.freeze(config);
}

function refuseContradictions(config: WorkerConfig): void {
  const { activities, sessions, registration } = config;
  if (activities.slots === 0 && sessions.max === 0) {
    contradiction(
      "WORKER_ACTIVITY_SLOTS",
      "WORKER_MAX_SESSIONS",
      "are both 0, so this worker would do nothing",
    );
  }
  if (activities.slots === 0 && activities.only) {
    contradiction(
      "WORKER_ACTIVITY_SLOTS",
      "WORKER_ACTIVITIES",
      "contradict: no slots for the activities named",
    );
  }
  if (activities.slots === 0 && activities.queues) {
    contradiction("WORKER_ACTIVITY_SLOTS", "WORKER_QUEUES", "contradict: no slots for the queues named");
  }
  if (sessions.max === 0 && sessions.types) {
    contradiction("WORKER_MAX_SESSIONS", "WORKER_SESSION_TYPES", "contradict: no room for the types named");
  }
  for (const [type, max] of Object.entries(sessions.maxPerType)) {
    if (sessions.types && !sessions.types.includes(type)) {
      contradiction(
        "WORKER_MAX_PER_TYPE",
        "WORKER_SESSION_TYPES",
        `contradict: type "${type}" is limited but not served`,
      );
    }
    if (max > sessions.max) {
      contradiction(
        "WORKER_MAX_PER_TYPE",
        "WORKER_MAX_SESSIONS",
        `contradict: ${max} of "${type}" do not fit into ${sessions.max}`,
      );
    }
  }
  if (registration.everyMs * 2 > registration.ttlMs) {
    contradiction(
      "WORKER_REGISTER_EVERY",
      "WORKER_REGISTER_TTL",
      "contradict: a worker must register at least twice within the time it is remembered",
    );
  }
}

function contradiction(one: string, other: string, why: string): never {
  throw new Fault("config", { code: "contradictory_settings", message: `${one} and ${other} ${why}` });
}
