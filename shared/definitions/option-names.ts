/** Options that do not exist are refused by name: a misspelt option would otherwise be ignored. */
import { HoldfastError } from "../errors/index.ts";
import type { ActivityOptions, RetryOptions } from "./activity.ts";
import type { HostOptions } from "./hosting.ts";
import type { KeyOptions } from "./keyed.ts";
import type { ChildOptions } from "./orchestration-context.ts";
import type { SessionTypeOptions } from "./session.ts";
import type { OpenSessionOptions, PoolOptions } from "./session-handles.ts";

/** Every property name of a type of options; the compiler refuses a table with one missing. */
export type OptionNames<Options> = { readonly [K in keyof Required<Options>]: true };

export const retryOptionNames: OptionNames<RetryOptions> = {
  maxAttempts: true,
  initialDelay: true,
  maxDelay: true,
  factor: true,
  nonRetryable: true,
};

export const activityOptionNames: OptionNames<ActivityOptions> = {
  queue: true,
  retry: true,
  scheduleToStart: true,
  startToClose: true,
  scheduleToClose: true,
  heartbeatTimeout: true,
};

export const openSessionOptionNames: OptionNames<OpenSessionOptions> = {
  id: true,
  config: true,
  creationTimeout: true,
  executionTimeout: true,
  idleTimeout: true,
  leaseTtl: true,
  onLost: true,
  recovery: true,
  placement: true,
  maxInitAttempts: true,
  metadata: true,
  lazy: true,
  concurrency: true,
  whenFull: true,
};

export const poolOptionNames: OptionNames<PoolOptions> = {
  id: true,
  min: true,
  max: true,
  linger: true,
  sharing: true,
  config: true,
};

export const keyOptionNames: OptionNames<KeyOptions> = {
  key: true,
  config: true,
  onLost: true,
  ttl: true,
};

export const childOptionNames: OptionNames<ChildOptions> = {
  id: true,
  grant: true,
};

export const hostOptionNames: OptionNames<HostOptions> = {
  sessionsPerHost: true,
  maxAge: true,
  maxCalls: true,
  maxRssMb: true,
  pingInterval: true,
  pingTimeout: true,
  maxMissed: true,
  ping: true,
  killGrace: true,
  maxMessageMb: true,
};

const sessionTypeOptionNames: OptionNames<SessionTypeOptions> = {
  isolation: true,
  host: true,
  command: true,
  cwd: true,
  env: true,
  threads: true,
  threadSafe: true,
  requires: true,
  idleTimeout: true,
  leaseTtl: true,
  creationTimeout: true,
  executionTimeout: true,
  concurrency: true,
  afterCancel: true,
  maxPerWorker: true,
  maxTotal: true,
  checkpointEvery: true,
  affinityKey: true,
};

/** The properties that `defineSession` takes: options and code. */
export const sessionOptionNames = {
  ...sessionTypeOptionNames,
  config: true,
  init: true,
  calls: true,
  share: true,
  checkpoint: true,
  restore: true,
  snapshot: true,
  shutdown: true,
} as const;

export const callOptionNames = {
  input: true,
  output: true,
  batch: true,
  timeout: true,
  heartbeatTimeout: true,
  run: true,
} as const;

export function refuseUnknownOptions(
  what: string,
  options: object | undefined,
  names: Readonly<Record<string, unknown>>,
): void {
  if (typeof options !== "object" || options === null) return;
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue;
    const nearest = nearestOf(name, Object.keys(names));
    throw new HoldfastError({
      code: "invalid_option",
      message: `${what} has no option "${name}"${nearest === undefined ? "" : `; did you mean "${nearest}"?`}`,
      details: { option: name, nearest, options: Object.keys(names) },
    });
  }
}

/** Undefined if no name is near. */
export function nearestOf(name: string, names: readonly string[]): string | undefined {
  let best: { name: string; steps: number } | undefined;
  for (const candidate of names) {
    const steps = distance(name.toLowerCase(), candidate.toLowerCase());
    if (!best || steps < best.steps) best = { name: candidate, steps };
  }
  return best && best.steps <= Math.max(2, Math.floor(name.length / 3)) ? best.name : undefined;
}

/** Number of letters to insert, remove or replace. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
