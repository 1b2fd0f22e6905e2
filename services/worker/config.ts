/** The worker's settings: read once at the start and checked together. An error names the variable. */
import { bareSessionType } from "../../schemas/index.ts";
import type { App } from "../../shared/definitions/index.ts";
import { Fault } from "../../shared/errors/index.ts";
import type { Environment } from "../config.ts";
import { type WorkerSettings, workerSettings } from "./settings.ts";

export interface WorkerConfig {
  /** Undefined: the worker makes an id for this process. */
  readonly nodeId: string | undefined;
  /** Undefined: the node id is used. */
  readonly resourceId: string | undefined;
  readonly buildId: string;
  readonly tags: readonly string[];
  readonly resources: Readonly<Record<string, number>>;
  readonly activities: {
    /** 0: this worker runs no plain activities. */
    readonly slots: number;
    /** Undefined: every queue that an activity of the application names. */
    readonly queues: readonly string[] | undefined;
    /** Undefined: every activity of the application. */
    readonly only: readonly string[] | undefined;
    /** The server gives a task to another worker if this one has not confirmed it for this long. */
    readonly ackWaitMs: number;
    /** A task delivered more often than this counts as poison. */
    readonly maxDeliveries: number;
    /** A task that was pulled and found no free slot for this long goes back to the queue. */
    readonly surplusWaitMs: number;
  };
  readonly sessions: {
    /** 0: this worker holds no sessions. */
    readonly max: number;
    /** Most sessions that all workers together hold at a time. Undefined: no quota. */
    readonly maxTotal: number | undefined;
    /** Calls that run at a time, over all sessions of this worker. */
    readonly callSlots: number;
    /** Undefined: every type of the application, and bare sessions. */
    readonly types: readonly string[] | undefined;
    /** Most sessions per type on this worker; takes precedence over the type's own `maxPerWorker`. */
    readonly maxPerType: Readonly<Record<string, number>>;
    /** Defaults for types and sessions that do not set their own. */
    readonly leaseTtlMs: number;
    readonly idleTimeoutMs: number;
    readonly maxInitMs: number;
  };
  readonly drainTimeoutMs: number;
  /** Undefined: the time between SIGTERM and SIGKILL is not known. */
  readonly stopGraceMs: number | undefined;
  readonly registration: { readonly everyMs: number; readonly ttlMs: number };
}

export function workerConfig(settings: WorkerSettings): WorkerConfig {
  const config: WorkerConfig = {
    nodeId: settings.WORKER_NODE_ID,
    resourceId: settings.WORKER_RESOURCE_ID,
    buildId: settings.WORKER_BUILD_ID,
    tags: settings.WORKER_TAGS ?? [],
    resources: settings.WORKER_RESOURCES ?? {},
    activities: {
      slots: settings.WORKER_ACTIVITY_SLOTS,
      queues: settings.WORKER_QUEUES,
      only: settings.WORKER_ACTIVITIES,
      ackWaitMs: settings.WORKER_ACK_WAIT,
      maxDeliveries: settings.WORKER_MAX_DELIVERIES,
      surplusWaitMs: settings.WORKER_SURPLUS_WAIT,
    },
    sessions: {
      max: settings.WORKER_MAX_SESSIONS,
      maxTotal: settings.WORKER_MAX_TOTAL_SESSIONS,
      callSlots: settings.WORKER_CALL_SLOTS,
      types: settings.WORKER_SESSION_TYPES,
      maxPerType: settings.WORKER_MAX_PER_TYPE ?? {},
      leaseTtlMs: settings.WORKER_LEASE_TTL,
      idleTimeoutMs: settings.WORKER_IDLE_TIMEOUT,
      maxInitMs: settings.WORKER_MAX_INIT,
    },
    drainTimeoutMs: settings.WORKER_DRAIN_TIMEOUT,
    stopGraceMs: settings.WORKER_STOP_GRACE,
    registration: { everyMs: settings.WORKER_REGISTER_EVERY, ttlMs: settings.WORKER_REGISTER_TTL },
  };
  refuseContradictions(config);
  return Object.freeze(config);
}

/** Refuses unknown variables: a misspelt one would otherwise be ignored. */
export function refuseUnknownSettings(env: Environment): void {
  const unknown = Object.keys(env).filter((name) => name.startsWith("WORKER_") && !(name in workerSettings));
  if (unknown.length === 0) return;
  throw new Fault("config", {
    code: "unknown_setting",
    message: `unknown setting${unknown.length > 1 ? "s" : ""} ${unknown.join(", ")}`,
    hint: `Known here: ${Object.keys(workerSettings).join(", ")}.`,
  });
}

/** The worker would wait for ever for tasks of a name that the application does not define. */
export function refuseUnknownNames(config: WorkerConfig, app: App): void {
  const check = (variable: string, wanted: readonly string[] | undefined, known: Iterable<string>) => {
    const names = new Set(known);
    const missing = wanted?.filter((name) => !names.has(name)) ?? [];
    if (missing.length === 0) return;
    throw new Fault("config", {
      code: "unknown_name",
      message: `${variable} names ${missing.join(", ")}, which the application does not have`,
      hint: `It has ${[...names].join(", ") || "none"}.`,
    });
  };
  const types = [...app.sessions.keys(), bareSessionType];
  check("WORKER_ACTIVITIES", config.activities.only, app.activities.keys());
  for (const name of config.activities.only ?? []) {
    const missing = app.activities.get(name)?.tags.filter((tag) => !config.tags.includes(tag)) ?? [];
    if (missing.length > 0)
      contradiction(
        "WORKER_ACTIVITIES",
        "WORKER_TAGS",
        `contradict: activity "${name}" requires ${missing.join(", ")}`,
      );
  }
  check("WORKER_SESSION_TYPES", config.sessions.types, types);
  check("WORKER_MAX_PER_TYPE", Object.keys(config.sessions.maxPerType), types);
}

function refuseContradictions(config: WorkerConfig): void {
  const { activities, sessions, registration, drainTimeoutMs, stopGraceMs } = config;
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
  if (stopGraceMs !== undefined && stopGraceMs <= drainTimeoutMs) {
    contradiction(
      "WORKER_DRAIN_TIMEOUT",
      "WORKER_STOP_GRACE",
      "contradict: it would be killed while it drains. The grace is DEPLOY_WORKER_STOP_GRACE in compose.yaml",
    );
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
