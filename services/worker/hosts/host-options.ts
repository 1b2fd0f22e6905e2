import type { AnySession, HostOptions } from "../../../shared/definitions/index.ts";
import { type Duration, parseDuration } from "../../../shared/runtime/index.ts";
import type { HeartbeatOptions } from "./heartbeat.ts";

/** A type's host options with their defaults, in milliseconds and bytes. */
export interface HostPolicy {
  sessionsPerHost: number;
  maxAgeMs: number | undefined;
  maxCalls: number | undefined;
  maxRssBytes: number | undefined;
  heartbeat: HeartbeatOptions;
  killGraceMs: number;
  /** A host without sessions is kept so long for the next. */
  lingerMs: number;
}

const threadLingerMs = 10_000;

export function hostPolicy(definition: AnySession): HostPolicy {
  const { host = {}, isolation } = definition.options;
  const ms = (option: keyof HostOptions, value: Duration | undefined, fallback: number): number =>
    value === undefined
      ? fallback
      : parseDuration(value, `host.${option} of session type ${definition.name}`);
  const ownProcess = isolation === "process";
  return {
    sessionsPerHost: ownProcess ? 1 : Math.max(1, host.sessionsPerHost ?? 4),
    maxAgeMs: host.maxAge === undefined ? undefined : ms("maxAge", host.maxAge, 0),
    maxCalls: host.maxCalls,
    maxRssBytes: host.maxRssMb === undefined ? undefined : host.maxRssMb * 1024 * 1024,
    heartbeat: {
      intervalMs: ms("pingInterval", host.pingInterval, 2000),
      timeoutMs: ms("pingTimeout", host.pingTimeout, 10_000),
      maxMissed: host.maxMissed ?? 3,
    },
    killGraceMs: ms("killGrace", host.killGrace, 5000),
    // What a process holds on to (a device, a port) is free only when it is gone.
    lingerMs: ownProcess ? 0 : threadLingerMs,
  };
}
