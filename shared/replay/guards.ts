/**
 * Inside a turn the language's own sources of nondeterminism are deterministic (time, randomness) or refused (timers,
 * I/O by fetch). Installed once by the process that runs orchestrations; outside a window nothing changes.
 */
import { losersCancelled } from "./losers.ts";
import { occupant } from "./turn-window.ts";

let installed = false;

export function installGuards(): void {
  if (installed) return;
  installed = true;
  guardDate();
  guardRandom();
  guardTimers();
  guardCombinators();
}

function guardDate(): void {
  const RealDate = Date;
  const realNow = RealDate.now;
  const guarded = new Proxy(RealDate, {
    construct(target, args, newTarget) {
      const who = occupant();
      return Reflect.construct(target, args.length === 0 && who ? [who.now] : args, newTarget);
    },
    apply(target, self, args) {
      const who = occupant();
      return who ? new RealDate(who.now).toString() : Reflect.apply(target, self, args);
    },
  });
  guarded.now = () => occupant()?.now ?? realNow();
  globalThis.Date = guarded;
}

function guardRandom(): void {
  const realRandom = Math.random;
  Math.random = () => occupant()?.random() ?? realRandom();
  const { crypto } = globalThis;
  const realUuid = crypto.randomUUID.bind(crypto);
  crypto.randomUUID = () =>
    (occupant()?.uuid() as ReturnType<typeof crypto.randomUUID> | undefined) ?? realUuid();
}

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
  const { race, any, all } = Promise;
  const patch = (real: (values: Iterable<unknown>) => Promise<unknown>) =>
    function (this: PromiseConstructor, values: Iterable<unknown>) {
      if (!occupant()) return real.call(this, values);
      const list = [...values];
      return losersCancelled(list, real.call(this, list));
    };
  Promise.race = patch(race as never) as typeof Promise.race;
  Promise.any = patch(any as never) as typeof Promise.any;
  Promise.all = patch(all as never) as typeof Promise.all;
}
