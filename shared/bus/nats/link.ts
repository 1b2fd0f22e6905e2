/**
 * One NATS connection and its state.
 *
 * LINK-1 Nothing is sent while disconnected: the client library would drop it silently.
 * LINK-2 A disconnect ends every call in flight at once; no caller waits for an answer that cannot come.
 */

import type { Msg, NatsConnection, PublishOptions, ServerInfo, Subscription } from "@nats-io/nats-core";
import { messageOf } from "../../errors/index.ts";
import type { Announce } from "../../runtime/index.ts";
import type { BusState } from "../bus.ts";
import { isPermissionError, unavailable } from "./nats-errors.ts";

const realImmediate = setImmediate;
const realTimeout = setTimeout;
const ackDelayMs = 2;

interface Corkable {
  cork(): void;
  uncork(): void;
}

/**
 * The library does not expose its socket. Undefined if it is not found: everything works without corking,
 * only slower.
 */
function socketOf(nc: NatsConnection): Corkable | undefined {
  const { protocol } = nc as unknown as { protocol?: { transport?: { socket?: Partial<Corkable> } } };
  const socket = protocol?.transport?.socket;
  return typeof socket?.cork === "function" && typeof socket.uncork === "function"
    ? (socket as Corkable)
    : undefined;
}

type Listener = (state: BusState) => void;
type Denied = (subject: string, error: Error) => void;

const maxHeldBack = 10_000;

export class Link {
  readonly nc: NatsConnection;
  readonly announce: Announce;
  readonly #listeners = new Set<Listener>();
  readonly #deniedListeners = new Set<Denied>();
  readonly #waiting = new Set<(connected: boolean) => void>();
  #state:
    | { kind: "up" }
    | { kind: "down"; since: number; held: [string, Uint8Array][] }
    | { kind: "closed" } = {
    kind: "up",
  };
  #info: ServerInfo;
  #corked = false;
  #acks: [string, Uint8Array][] = [];

  constructor(nc: NatsConnection, info: ServerInfo, announce: Announce) {
    this.nc = nc;
    this.#info = info;
    this.announce = announce;
    void this.#watch();
  }

  get info(): ServerInfo {
    return this.#info;
  }

  /** True if the server is part of a cluster. */
  get clustered(): boolean {
    return this.#info.cluster !== undefined;
  }

  get connected(): boolean {
    return this.#state.kind === "up";
  }

  get closed(): boolean {
    return this.#state.kind === "closed";
  }

  onState(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onDenied(listener: Denied): void {
    this.#deniedListeners.add(listener);
  }

  /** Resolves to true once connected; to false if the timeout passes first or the connection is closed. */
  ready(timeoutMs: number): Promise<boolean> {
    if (this.#state.kind !== "down") return Promise.resolve(this.#state.kind === "up");
    return new Promise((resolve) => {
      const settle = (connected: boolean) => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
        resolve(connected);
      };
      const timer = setTimeout(() => settle(false), timeoutMs);
      this.#waiting.add(settle);
    });
  }

  /**
   * Messages written in one round of the event loop leave in one system call: a system call per message would
   * cost more than the message itself, here and at the server.
   */
  publish(subject: string, body: Uint8Array, options?: PublishOptions): void {
    this.cork();
    if (this.#acks.length > 0) this.#sendAcks();
    this.nc.publish(subject, body, options);
  }

  #sendAcks(): void {
    const acks = this.#acks;
    this.#acks = [];
    for (const [subject, body] of acks) this.nc.publish(subject, body);
  }

  /** Holds the socket back, so that a message the library writes next leaves in the same system call. */
  cork(): void {
    const socket = this.#corked ? undefined : socketOf(this.nc);
    if (!socket) return;
    this.#corked = true;
    socket.cork();
    realImmediate(() => {
      this.#corked = false;
      socket.uncork();
    });
  }

  /**
   * For acknowledgements: sent together with the next message, or alone a moment later. While disconnected
   * they wait for the reconnect, so that finished work is not redelivered.
   */
  sendSoon(subject: string, body: Uint8Array): void {
    if (this.#state.kind === "up") {
      this.#acks.push([subject, body]);
      if (this.#acks.length === 1) realTimeout(() => this.#sendDelayedAcks(), ackDelayMs);
    } else if (this.#state.kind === "down" && this.#state.held.length < maxHeldBack) {
      this.#state.held.push([subject, body]);
    }
  }

  #sendDelayedAcks(): void {
    if (this.#acks.length === 0 || this.#state.kind !== "up") return;
    this.cork();
    this.#sendAcks();
  }

  /** Catches what the callback throws: an uncaught error would end the reader of the whole connection. */
  subscribe(subject: string, queue: string | undefined, onMessage: (message: Msg) => void): Subscription {
    this.cork();
    return this.nc.subscribe(subject, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error, message) => {
        if (error) return this.fault(`subscription to ${subject}`, error);
        try {
          onMessage(message);
        } catch (thrown) {
          this.fault(`subscription to ${subject}`, thrown);
        }
      },
    });
  }

  fault(where: string, error: unknown): void {
    const message = messageOf(error);
    const code = isPermissionError(error) ? "permission_denied" : "handler_threw";
    this.announce({ kind: "fault", where, code, message, error });
  }

  async flush(): Promise<void> {
    if (!(await this.ready(5_000))) throw unavailable("flush");
    this.#sendDelayedAcks();
    try {
      await this.nc.flush();
    } catch {
      throw unavailable("flush"); // The connection was lost meanwhile.
    }
  }

  async close(): Promise<void> {
    if (this.#state.kind === "closed") return;
    const wasUp = this.#state.kind === "up";
    this.#sendDelayedAcks();
    if (wasUp) await this.nc.flush().catch(() => undefined); // Best effort: flush the messages sent so far.
    this.#closed();
    await this.nc.close();
  }

  async #watch(): Promise<void> {
    for await (const status of this.nc.status()) {
      if (status.type === "disconnect") this.#down();
      else if (status.type === "reconnect") this.#up();
      else if (status.type === "error" && isPermissionError(status.error)) {
        for (const listener of this.#deniedListeners) listener(status.error.subject, status.error);
      }
    }
    if (this.#state.kind !== "closed") {
      this.announce({
        kind: "fault",
        where: "bus",
        code: "bus_closed",
        message: "the client closed the connection",
      });
    }
    this.#closed();
  }

  #down(): void {
    if (this.#state.kind !== "up") return;
    this.#state = { kind: "down", since: performance.now(), held: this.#acks };
    this.#acks = [];
    this.announce({ kind: "bus.disconnected" });
    this.#notify({ kind: "disconnected" });
  }

  #up(): void {
    if (this.#state.kind !== "down") return;
    const { since, held } = this.#state;
    this.#state = { kind: "up" };
    this.#info = this.nc.info ?? this.#info;
    for (const [subject, body] of held) this.publish(subject, body);
    const awayMs = Math.round(performance.now() - since);
    this.announce({ kind: "bus.reconnected", awayMs });
    for (const settle of [...this.#waiting]) settle(true);
    this.#notify({ kind: "reconnected", awayMs });
  }

  #closed(): void {
    if (this.#state.kind === "closed") return;
    this.#state = { kind: "closed" };
    for (const settle of [...this.#waiting]) settle(false);
    this.#notify({ kind: "disconnected" });
    this.#listeners.clear();
  }

  #notify(state: BusState): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(state);
      } catch (thrown) {
        this.fault("listener of the bus state", thrown);
      }
    }
  }
}
