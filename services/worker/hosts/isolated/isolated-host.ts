/**
 * A host outside the worker's thread: ready before it is used, watched while it lives, ended completely.
 *
 * HOST-1 No session is offered to a host before it reported ready.
 * HOST-2 A host is lost once, with its reason; every open request ends then. A hung host is ended before its
 *    sessions are given up, so that what they hold is free for their successors.
 * HOST-3 After `end` nothing of it is left.
 */
import type { Isolation } from "../../../../shared/definitions/index.ts";
import { HoldfastError } from "../../../../shared/errors/index.ts";
import { once, type Runtime } from "../../../../shared/runtime/index.ts";
import type { Host, HostEnd } from "../host.ts";
import type { Carrier, Exit } from "./carrier.ts";
import { Heartbeat, type HeartbeatOptions } from "./heartbeat.ts";
import { HostClient, HostedFailure } from "./host-client.ts";
import type { FromHost } from "./protocol.ts";

interface IsolatedHostOptions {
  id: string;
  isolation: Isolation;
  carrier: Carrier;
  runtime: Runtime;
  /** Undefined: the host is not pinged. */
  heartbeat: HeartbeatOptions | undefined;
  killGraceMs: number;
}

/** Longer than a ping and its answer take in a host whose code yields now and then. */
const noticeableMs = 500;

type State =
  | { kind: "starting" }
  | { kind: "ready"; heartbeat: Heartbeat | undefined }
  | { kind: "ending" }
  | { kind: "gone" };

export class IsolatedHost implements Host {
  readonly id: string;
  readonly isolation: Isolation;
  readonly client: HostClient;
  /** HOST-1. Rejects if the host can never be ready. */
  readonly ready: Promise<void>;
  readonly startedAt: number;
  readonly #options: IsolatedHostOptions;
  readonly #listeners = new Set<(end: HostEnd) => void>();
  #state: State = { kind: "starting" };
  #rssBytes: number | undefined;
  #settleReady: { resolve: () => void; reject: (error: Error) => void } | undefined;

  constructor(options: IsolatedHostOptions) {
    const { carrier, runtime } = options;
    this.id = options.id;
    this.isolation = options.isolation;
    this.startedAt = runtime.clock.monotonic();
    this.#options = options;
    this.client = new HostClient(carrier.post);
    this.ready = new Promise((resolve, reject) => {
      this.#settleReady = { resolve, reject };
    });
    this.ready.catch(() => undefined); // callers that wait for it get the error; there may be none
    carrier.listen({ message: (message) => this.#receive(message), exit: (exit) => this.#exited(exit) });
  }

  get alive(): boolean {
    return this.#state.kind === "starting" || this.#state.kind === "ready";
  }

  onLost(listener: (end: HostEnd) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  rssBytes(): number | undefined {
    // A thread's resident memory is the whole process's.
    return this.isolation === "process" ? this.#rssBytes : undefined;
  }

  info(): { id: string; silentSince?: number } {
    const silentMs = this.#state.kind === "ready" ? (this.#state.heartbeat?.unansweredMs() ?? 0) : 0;
    if (silentMs < noticeableMs) return { id: this.id };
    return { id: this.id, silentSince: Math.round(this.#options.runtime.clock.now() - silentMs) };
  }

  end = once(async (): Promise<void> => {
    if (this.#state.kind !== "gone") await this.#end("ended", undefined);
  });

  #receive(message: FromHost): void {
    switch (message.kind) {
      case "ready":
        this.#becomeReady();
        break;
      case "unable":
        this.#settleReady?.reject(new HostedFailure(message.error));
        void this.end();
        break;
      case "pong":
        this.#rssBytes = message.rssBytes;
        if (this.#state.kind === "ready") this.#state.heartbeat?.pong();
        break;
      case "host-log": {
        const { level, message: text, fields } = message;
        const more = fields ? { fields } : {};
        this.#options.runtime.announce({ kind: "host.log", host: this.id, level, message: text, ...more });
        break;
      }
      case "refused":
        this.#options.runtime.announce({
          kind: "host.refused",
          ...{ host: this.id, why: message.why, request: message.id },
        });
        break;
      default:
        this.client.receive(message);
    }
  }

  #becomeReady(): void {
    if (this.#state.kind !== "starting") return;
    const { runtime, heartbeat, carrier, id, isolation } = this.#options;
    const ping = (n: number) => this.client.ping(n);
    const onHung = (silentMs: number) => void this.#hung(silentMs);
    const watched = heartbeat && new Heartbeat(runtime.clock, heartbeat, ping, onHung);
    this.#state = { kind: "ready", heartbeat: watched };
    const pid = carrier.pid === undefined ? {} : { pid: carrier.pid };
    runtime.announce({ kind: "host.started", host: id, isolation, ...pid });
    this.#settleReady?.resolve();
  }

  async #hung(silentMs: number): Promise<void> {
    const detail = `${this.isolation} host ${this.id} did not answer for ${Math.round(silentMs)} ms`;
    await this.#end("hung", { reason: "hung", detail });
  }

  async #end(why: string, lost: HostEnd | undefined): Promise<void> {
    if (this.#state.kind === "ready") this.#state.heartbeat?.stop();
    this.#state = { kind: "ending" };
    await this.#options.carrier.end(this.#options.killGraceMs);
    this.#gone(why, lost);
  }

  /** The host exited by itself, or because it was ended: then `#end` holds the reason. */
  #exited({ how }: Exit): void {
    if (this.#state.kind === "ending" || this.#state.kind === "gone") return;
    if (this.#state.kind === "ready") this.#state.heartbeat?.stop();
    const lastLines = this.#options.carrier.lastWords();
    const detail = `${this.isolation} host ${this.id} ${how}${lastLines === "" ? "" : `\n${lastLines}`}`;
    this.#gone("crashed", { reason: "crashed", detail });
  }

  #gone(why: string, lost: HostEnd | undefined): void {
    if (this.#state.kind === "gone") return;
    this.#state = { kind: "gone" };
    const message = lost?.detail ?? `host ${this.id} has ended`;
    const error = new HoldfastError({ code: "host_gone", message, retryable: true });
    this.#settleReady?.reject(error);
    const { runtime, id, isolation } = this.#options;
    const detail = lost === undefined ? {} : { detail: lost.detail };
    runtime.announce({ kind: "host.ended", host: id, isolation, why, ...detail });
    // Sessions first, so that they know the reason before their open requests fail.
    if (lost) for (const listener of [...this.#listeners]) listener(lost);
    this.#listeners.clear();
    this.client.end(error);
  }
}
