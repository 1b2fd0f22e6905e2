/**
 * The bus of one member of a test on a real server: times are those of the test's calendar, and after the
 * member's death none of its requests is answered.
 */
import type { Bus, Delivery, StoredMessage } from "../../bus/index.ts";
import type { CalendarClock } from "./calendar-clock.ts";

interface MemberBus {
  readonly bus: Bus;
  kill(): void;
}

export function memberBus(real: Bus, calendar: CalendarClock, cut: () => void): MemberBus {
  let dead = false;
  const dated = <M extends StoredMessage>(message: M): M => {
    const at = calendar.dated(message.at);
    // A delivery's methods need the original object, so the field is redefined in place.
    return Object.defineProperty(message, "at", { value: at, configurable: true, enumerable: true });
  };
  const changed: Partial<Bus> = {
    publish: (subject, body, options) => {
      const { schedule } = options ?? {};
      if (!schedule) return real.publish(subject, body, options);
      const at = schedule.at - calendar.aheadMs;
      return real.publish(subject, body, { ...options, schedule: { ...schedule, at } });
    },
    streamInfo: async (name) => {
      const info = await real.streamInfo(name);
      return info && { ...info, seenAt: calendar.dated(info.seenAt) };
    },
    last: async (stream, subject, options) => {
      const message = await real.last(stream, subject, options);
      return message && dated(message);
    },
    read: async (stream, subject, fromSeq, limit) =>
      (await real.read(stream, subject, fromSeq, limit))?.map(dated),
    lastPerSubject: async function* (stream, filter) {
      for await (const message of real.lastPerSubject(stream, filter)) yield dated(message);
    },
    consume: (stream, consumer, options) =>
      real.consume(stream, consumer, {
        ...options,
        onMessage: (message: Delivery) => dead || options.onMessage(dated(message)),
      }),
    next: async (stream, consumer, options) => {
      const message = await real.next(stream, consumer, options);
      return message && dated(message);
    },
    tail: (stream, filter, options) =>
      real.tail(stream, filter, {
        ...options,
        onMessage: (message) => dead || options.onMessage(dated(message)),
      }),
    subscribe: (subject, options, onMessage) =>
      real.subscribe(subject, options, (message) => dead || onMessage(message)),
  };
  return {
    bus: mortal(real, changed, () => dead),
    kill: () => {
      dead = true;
      cut();
      void real.close().catch(() => undefined);
    },
  };
}

/** Wraps the object: after its owner's death its promises never settle. */
function mortal<T extends object>(target: T, changed: Partial<T>, dead: () => boolean): T {
  const proxy: T = new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(changed, name) ?? Reflect.get(target, name);
      if (typeof value === "function")
        return (...args: unknown[]) => {
          if (dead()) return inert(name);
          const result: unknown = Reflect.apply(value, target, args);
          return result instanceof Promise ? untilDeath(result, dead) : result;
        };
      return typeof value === "object" && value !== null ? mortal(value, {}, dead) : value;
    },
  });
  return proxy;
}

const never: Promise<never> = new Promise(() => undefined);

/** What a dead member's method returns; methods that answer synchronously need a value. */
function inert(name: string | symbol): unknown {
  if (name === "connected" || name === "clustered") return false;
  if (name === "send") return undefined;
  if (name === "onState") return () => undefined;
  if (name === "serverId" || name === "serverName" || name === "serverVersion") return "";
  return never;
}

function untilDeath(work: Promise<unknown>, dead: () => boolean): Promise<unknown> {
  return new Promise((resolve, reject) => {
    work.then(
      (value) => dead() || resolve(value),
      (error: unknown) => dead() || reject(error),
    );
  });
}
