import type { AnySession, HostOptions } from "../../../shared/definitions/index.ts";
import { type Duration, parseDuration } from "../../../shared/runtime/index.ts";
import type { HeartbeatOptions } from "./heartbeat.ts";

/** A type's host options with their defaults, in milliseconds and bytes. */
export interface HostPolicy {
  sessionsPerHost: number;
  maxAgeMs: number | undefined;
  maxCalls: number | undefined;
  maxRssBytes: number | undefined;
  /** Undefined: never asked. */
  heartbeat: HeartbeatOptions | undefined;
  /** Of one message to or from a program of its own. */
  maxMessageBytes: number;
  /** Threads of one host on which calls of one session compute. */
  threads: number;
  killGraceMs: number;
  /** A host without sessions is kept so long for the next. */
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
    // What a process holds on to (a device, a port) is free only when it is gone.
    lingerMs: ownProcess ? 0 : threadLingerMs,
  };
}
