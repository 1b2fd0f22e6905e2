import type { AnySession, HostOptions } from "../../../shared/definitions/index.ts";
import { type Duration, parseDuration } from "../../../shared/runtime/index.ts";
import type { HeartbeatOptions } from "./isolated/heartbeat.ts";

/** A type's host options with their defaults, in milliseconds and bytes. */
export interface HostPolicy {
  sessionsPerHost: number;
  maxAgeMs: number | undefined;
  maxCalls: number | undefined;
  maxRssBytes: number | undefined;
  /** Undefined: the host is not pinged. */
  heartbeat: HeartbeatOptions | undefined;
  /** Largest message to or from a program of its own. */
  maxMessageBytes: number;
  /** Threads of one host that run calls of one session. */
  threads: number;
  killGraceMs: number;
  /** How long a host without sessions is kept for the next session. */
  lingerMs: number;
}

const threadLingerMs = 10_000;
const megabyte = 1024 * 1024;
const maxMessageMb = 256;

export function hostPolicy(definition: AnySession): HostPolicy {
  const { host = {}, isolation } = definition.options;
  const ms = (
    option: keyof HostOptions | "ping.initialDelay",
    value: Duration | undefined,
    fallback: number,
  ): number =>
    value === undefined
      ? fallback
      : parseDuration(value, `host.${option} of session type ${definition.name}`);
  const ownProcess = isolation === "process";
  const { threads = 1 } = definition.options;
  const intervalMs = ms("pingInterval", host.pingInterval, 2000);
  return {
    sessionsPerHost: ownProcess ? 1 : Math.max(1, host.sessionsPerHost ?? 1),
    maxAgeMs: host.maxAge === undefined ? undefined : ms("maxAge", host.maxAge, 0),
    maxCalls: host.maxCalls,
    maxRssBytes: host.maxRssMb === undefined ? undefined : host.maxRssMb * megabyte,
    heartbeat:
      host.ping?.enabled === false
        ? undefined
        : {
            initialDelayMs: ms("ping.initialDelay", host.ping?.initialDelay, intervalMs),
            intervalMs,
            timeoutMs: ms("pingTimeout", host.pingTimeout, 10_000),
            maxMissed: host.maxMissed ?? 3,
          },
    maxMessageBytes: Math.floor((host.maxMessageMb ?? maxMessageMb) * megabyte),
    threads,
    killGraceMs: ms("killGrace", host.killGrace, 5000),
    // A device or port that a process holds is free only when the process is gone.
    lingerMs: ownProcess ? 0 : threadLingerMs,
  };
}
