/** Refuses options of a session type that are wrong or contradict each other, by their names. */
import { tokenPattern, tokenRule } from "../../schemas/index.ts";
import { Fault } from "../errors/index.ts";
import { type Duration, parseDuration } from "../runtime/index.ts";
import { refuseUnknownOptions } from "./option-names.ts";
import type { AnyCall, SessionTypeOptions } from "./session.ts";

export function checkSessionType(
  name: string,
  options: SessionTypeOptions,
  calls: Readonly<Record<string, AnyCall>>,
): void {
  const of = (option: string) => `${option} of session type ${name}`;
  const ms = (option: string, value: Duration | undefined, least = 0) => {
    const given = value === undefined ? undefined : parseDuration(value, of(option));
    if (given !== undefined && given < least) refuse(`${of(option)} must be at least ${least} ms`);
    return given;
  };
  const leaseTtlMs = ms("leaseTtl", options.leaseTtl);
  if (leaseTtlMs !== undefined && (leaseTtlMs < 1000 || leaseTtlMs % 1000 !== 0))
    refuse(`${of("leaseTtl")} of ${leaseTtlMs} ms is not possible: must be whole seconds, at least 1 s`);
  oneOf(of("isolation"), options.isolation, ["inline", "thread", "process"]);
  oneOf(of("afterCancel"), options.afterCancel, ["give_up", "go_on"]);
  atLeastOne(of("concurrency"), options.concurrency);
  atLeastOne(of("maxPerWorker"), options.maxPerWorker);
  atLeastOne(of("maxTotal"), options.maxTotal);
  const { maxPerWorker, maxTotal } = options;
  if (maxPerWorker !== undefined && maxTotal !== undefined && maxPerWorker > maxTotal) {
    refuse(
      `maxPerWorker (${maxPerWorker}) and maxTotal (${maxTotal}) of session type ${name} contradict: one worker cannot hold more than all together`,
    );
  }
  atLeastOne(of("checkpointEvery"), options.checkpointEvery);
  checkRequires(name, options.requires);
  const { host } = options;
  refuseUnknownOptions(of("host.ping"), host?.ping, { enabled: true, initialDelay: true });
  atLeastOne(of("host.sessionsPerHost"), host?.sessionsPerHost);
  atLeastOne(of("host.maxMissed"), host?.maxMissed);
  atLeastOne(of("host.maxCalls"), host?.maxCalls);
  for (const option of ["maxAge", "pingInterval", "pingTimeout"] as const)
    ms(`host.${option}`, host?.[option], 1);
  ms("host.killGrace", host?.killGrace);
  ms("host.ping.initialDelay", host?.ping?.initialDelay);
  for (const option of ["maxMessageMb", "maxRssMb"] as const) {
    const value = host?.[option];
    if (value !== undefined && !(value > 0))
      refuse(`${of(`host.${option}`)} is ${value}: must be more than 0`);
  }
  if (options.isolation === "process" && (host?.sessionsPerHost ?? 1) > 1) {
    refuse(
      `${of("isolation")} is "process", which hosts one session, and host.sessionsPerHost is more than 1`,
    );
  }
  for (const [callName, call] of Object.entries(calls)) checkCall(`${name}.${callName}`, call);
}

function checkRequires(name: string, requires: SessionTypeOptions["requires"]): void {
  const what = `requires of session type ${name}`;
  refuseUnknownOptions(what, requires, { tags: true, resources: true });
  if (requires?.tags !== undefined) requireTags(`${what}: tags`, requires.tags, refuse);
  for (const [resource, amount] of Object.entries(requires?.resources ?? {}))
    if (!(Number.isFinite(amount) && amount >= 0))
      refuse(`${what}: resources.${resource} is ${String(amount)}: must be a number, at least 0`);
}

/** Refuses a string in place of a list: its letters would count as tags. */
export function requireTags(what: string, tags: unknown, refuse: (message: string) => never): string[] {
  if (!Array.isArray(tags)) return refuse(`${what} must be a list, not ${JSON.stringify(tags)}`);
  return tags.map((tag: unknown) => {
    if (typeof tag === "string" && tokenPattern.test(tag)) return tag;
    return refuse(`${what}: tag ${JSON.stringify(tag)} is not allowed: must be ${tokenRule}`);
  });
}

function checkCall(name: string, call: AnyCall): void {
  const timeoutMs =
    call.timeout === undefined ? undefined : parseDuration(call.timeout, `timeout of ${name}`);
  const beatMs =
    call.heartbeatTimeout === undefined
      ? undefined
      : parseDuration(call.heartbeatTimeout, `heartbeatTimeout of ${name}`);
  if (timeoutMs !== undefined && beatMs !== undefined && beatMs > timeoutMs) {
    refuse(
      `heartbeatTimeout (${beatMs} ms) and timeout (${timeoutMs} ms) of ${name} contradict: the call times out before a heartbeat could be missed`,
    );
  }
  if (!call.batch) return;
  atLeastOne(`batch.maxSize of ${name}`, call.batch.maxSize);
  parseDuration(call.batch.maxDelay, `batch.maxDelay of ${name}`);
}

function atLeastOne(what: string, value: number | undefined): void {
  if (value !== undefined && !(Number.isInteger(value) && value >= 1)) {
    refuse(`${what} is ${value}: must be a whole number, at least 1`);
  }
}

function oneOf(what: string, value: string | undefined, values: readonly string[]): void {
  if (value !== undefined && !values.includes(value))
    refuse(`${what} is ${JSON.stringify(value)}: must be one of ${values.join(", ")}`);
}

function refuse(message: string): never {
  throw new Fault("config", { code: "invalid_session_definition", message });
}
