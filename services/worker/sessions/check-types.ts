/**
 * Refuses session types whose options contradict each other when the worker starts, naming the options,
 * instead of at the first claim.
 */
import type { AnyCall, AnySession } from "../../../shared/definitions/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { requireTtl } from "../../../shared/leases/index.ts";
import { type Duration, parseDuration } from "../../../shared/runtime/index.ts";

export function checkTypes(definitions: Iterable<AnySession>): void {
  for (const definition of definitions) checkType(definition);
}

function checkType({ name, options, calls }: AnySession): void {
  const of = (option: string) => `${option} of session type ${name}`;
  const ms = (option: string, value: Duration | undefined) =>
    value === undefined ? undefined : parseDuration(value, of(option));
  const leaseTtlMs = ms("leaseTtl", options.leaseTtl);
  if (leaseTtlMs !== undefined) requireTtl(leaseTtlMs, of("leaseTtl"));
  ms("idleTimeout", options.idleTimeout);
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
  const { host } = options;
  atLeastOne(of("host.sessionsPerHost"), host?.sessionsPerHost);
  atLeastOne(of("host.maxMissed"), host?.maxMissed);
  atLeastOne(of("host.maxCalls"), host?.maxCalls);
  ms("host.ping.initialDelay", host?.ping?.initialDelay);
  if (host?.maxMessageMb !== undefined && !(host.maxMessageMb > 0)) {
    refuse(`${of("host.maxMessageMb")} is ${host.maxMessageMb}: must be more than 0`);
  }
  if (options.isolation === "process" && (host?.sessionsPerHost ?? 1) > 1) {
    refuse(
      `${of("isolation")} is "process", which hosts one session, and host.sessionsPerHost is more than 1`,
    );
  }
  for (const [callName, call] of Object.entries(calls)) checkCall(`${name}.${callName}`, call);
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
      `heartbeatTimeout (${beatMs} ms) and timeout (${timeoutMs} ms) of ${name} contradict: it would never count`,
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

function refuse(message: string): never {
  throw new Fault("config", { code: "invalid_session_definition", message });
}
