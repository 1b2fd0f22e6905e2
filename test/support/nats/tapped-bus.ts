/** Looks at, and may change, everything the members of a simulated world say to one another. */
import type { Headers, PublishOptions } from "../../../shared/bus/bus.ts";
import type { MemoryBus } from "../../../shared/testing/memory/index.ts";
import type { World } from "../../../shared/testing/world/world.ts";

export interface Said {
  subject: string;
  body: Uint8Array;
  headers: Headers;
  /** It answers a request on `subject`. */
  answer: boolean;
  /** How many have connected before whoever says it; -1: whoever is outside. */
  by: number;
}

export type Tap = (said: Said) => { body: Uint8Array; headers: Headers };

/** All members that connect from now on, and the outside client. */
export function tapWorld(world: World, tap: Tap): void {
  tapBus(world.outside, tap, -1);
  const connect = world.broker.connect.bind(world.broker);
  let connected = 0;
  world.broker.connect = (options) => tapBus(connect(options), tap, connected++);
}

function tapBus(bus: MemoryBus, tap: Tap, by: number): MemoryBus {
  const said = (subject: string, body: Uint8Array, headers: Headers = {}, answer = false) =>
    body.length === 0 ? { body, headers } : tap({ subject, body, headers, answer, by });
  const publish = bus.publish.bind(bus);
  bus.publish = (subject, body, options: PublishOptions = {}) => {
    const changed = said(subject, body, options.headers);
    return publish(subject, changed.body, { ...options, headers: changed.headers });
  };
  const send = bus.send.bind(bus);
  bus.send = (subject, body, headers) => {
    const changed = said(subject, body, headers);
    send(subject, changed.body, changed.headers);
  };
  const request = bus.request.bind(bus);
  bus.request = (subject, body, options) => {
    const changed = said(subject, body, options.headers);
    return request(subject, changed.body, { ...options, headers: changed.headers });
  };
  const subscribe = bus.subscribe.bind(bus);
  bus.subscribe = (subject, options, onMessage) =>
    subscribe(subject, options, (message) => {
      const { reply } = message;
      const answer: typeof reply =
        reply &&
        ((body, headers) => {
          const changed = said(message.subject, body, headers, true);
          reply(changed.body, changed.headers);
        });
      onMessage({ ...message, reply: answer });
    });
  return bus;
}
