/**
 * Inside a turn the language's own sources of nondeterminism are deterministic (time, randomness) or refused
 * (timers, I/O by fetch). Installed once by the process that runs orchestrations; outside a window nothing
 * changes.
 */
import nodeCrypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { type Losing, withAll, withoutLosers, withWinner } from "../handles/promise-combinators.ts";
import { installPromiseGraph } from "./promise-graph.ts";
import { occupant } from "./turn-window.ts";

let installed = false;

export function installGuards(): void {
  if (installed) return;
  installed = true;
  guardDate();
  guardRandom();
  guardTimers();
  guardCombinators();
  installPromiseGraph();
}

function guardDate(): void {
  const RealDate = Date;
  const realNow = RealDate.now;
  const guarded = new Proxy(RealDate, {
    construct(target, args, newTarget) {
      const code = occupant();
      return Reflect.construct(target, args.length === 0 && code ? [code.now] : args, newTarget);
    },
    apply(target, self, args) {
      const code = occupant();
      return code ? new RealDate(code.now).toString() : Reflect.apply(target, self, args);
    },
  });
  guarded.now = () => occupant()?.now ?? realNow();
  globalThis.Date = guarded;
  const { performance } = globalThis;
  const realMonotonic = performance.now.bind(performance);
  performance.now = () => occupant()?.now ?? realMonotonic();
}

function guardRandom(): void {
  const realRandom = Math.random;
  Math.random = () => occupant()?.random.next() ?? realRandom();
  const { crypto } = globalThis;
  crypto.randomUUID = deterministic(crypto.randomUUID.bind(crypto));
  const realValues = crypto.getRandomValues.bind(crypto);
  crypto.getRandomValues = (array) => {
    const code = occupant();
    if (!code || !ArrayBuffer.isView(array)) return realValues(array);
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let index = 0; index < bytes.length; index++) bytes[index] = code.random.next() * 256;
    return array;
  };
  nodeCrypto.randomUUID = deterministic(nodeCrypto.randomUUID);
  // Also for modules that import these functions by name.
  syncBuiltinESMExports();
}

type RandomUuid = typeof nodeCrypto.randomUUID;
const deterministic =
  (real: RandomUuid): RandomUuid =>
  (options) =>
    (occupant()?.random.uuid() as ReturnType<RandomUuid> | undefined) ?? real(options);

function guardTimers(): void {
  const refuseInside = <A extends unknown[], R>(name: string, real: (...args: A) => R): ((...args: A) => R) =>
    Object.assign((...args: A) => {
      occupant()?.refuse(name);
      return real(...args);
    }, real);
  globalThis.setTimeout = refuseInside("setTimeout", globalThis.setTimeout) as typeof setTimeout;
  globalThis.setInterval = refuseInside("setInterval", globalThis.setInterval) as typeof setInterval;
  globalThis.setImmediate = refuseInside("setImmediate", globalThis.setImmediate) as typeof setImmediate;
  if (globalThis.fetch) globalThis.fetch = refuseInside("fetch", globalThis.fetch);
}

function guardCombinators(): void {
  type Combine = (values: Iterable<unknown>) => Promise<unknown>;
  const guard = (
    name: "race" | "any" | "all" | "allSettled",
    inside: (real: Combine, list: readonly unknown[], losing: Losing) => Promise<unknown>,
  ) => {
    const real = Promise[name] as Combine;
    const guarded = function (this: PromiseConstructor, values: Iterable<unknown>) {
      const iterable = typeof values === "object" && values !== null && Symbol.iterator in values;
      const code = occupant();
      if (!code || !iterable) return real.call(this, values);
      return inside((list) => real.call(this, list), [...values], code);
    };
    Object.assign(Promise, { [name]: guarded });
  };
  guard("race", (real, list, losing) => withWinner(real, list, "settled", losing));
  guard("any", (real, list, losing) => withWinner(real, list, "fulfilled", losing));
  guard("all", withAll);
  guard("allSettled", withoutLosers);
}
