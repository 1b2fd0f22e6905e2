/** The connection between one client and the broker, with the traffic that waits on it. */
import type { BusState } from "../../bus/index.ts";
import { Fault, messageOf } from "../../errors/index.ts";
import type { Announce, Clock } from "../../runtime/index.ts";
import type { Fate } from "./faults.ts";

/** Seen from the client. */
export type Direction = "outgoing" | "incoming";

/** Each waiting callback gets true if its message arrives after all. */
interface Gate {
  kind: "held" | "lost";
  waiting: ((arrives: boolean) => void)[];
}

export class ClientState {
  readonly #clock: Clock;
  readonly #fate: Fate;
  readonly #announce: Announce;
  readonly #listeners = new Set<(state: BusState) => void>();
  readonly #waiting = new Set<(up: boolean) => void>();
  /** Traffic that is held or lost on its way, in order; undefined if it flows. */
  readonly #gates: Record<Direction, Gate | undefined> = { outgoing: undefined, incoming: undefined };
  #state:
    | { kind: "up" }
    | { kind: "down"; since: number; held: (() => void)[] }
    | { kind: "killed" }
    | { kind: "closed" } = { kind: "up" };

  constructor(clock: Clock, fate: Fate, announce: Announce) {
    this.#clock = clock;
    this.#fate = fate;
    this.#announce = announce;
  }

  get up(): boolean {
    return this.#state.kind === "up";
  }

  get killed(): boolean {
    return this.#state.kind === "killed";
  }

  get over(): boolean {
    return this.#state.kind === "killed" || this.#state.kind === "closed";
  }

  onState(listener: (state: BusState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Messages in this direction wait, in order, until they are let through: a stalled network, or a sleeping
   * process.
   */
  hold(direction: Direction): void {
    this.#gates[direction] ??= { kind: "held", waiting: [] };
  }

  /**
   * Messages in this direction never arrive, and neither side learns of it: one half of the connection is
   * dead.
   */
  lose(direction: Direction): void {
    this.#gates[direction] = { kind: "lost", waiting: this.#gates[direction]?.waiting ?? [] };
  }

  letThrough(direction: Direction): void {
    const gate = this.#gates[direction];
    this.#gates[direction] = undefined;
    for (const pass of gate?.waiting ?? []) pass(gate?.kind === "held");
  }

  get stalled(): boolean {
    return this.#gates.outgoing !== undefined || this.#gates.incoming !== undefined;
  }

  #pass(direction: Direction, act: () => void): void {
    const gate = this.#gates[direction];
    if (gate) gate.waiting.push((arrives) => arrives && act());
    else act();
  }

  /**
   * Resolves to false if the message was lost, which is known once the connection is found to be broken.
   * Undefined if traffic flows.
   */
  #passed(direction: Direction): Promise<boolean> | undefined {
    const gate = this.#gates[direction];
    return gate && new Promise((resolve) => gate.waiting.push(resolve));
  }

  disconnect(): void {
    if (this.#state.kind !== "up") return;
    this.#state = { kind: "down", since: this.#clock.monotonic(), held: [] };
    this.#notify({ kind: "disconnected" });
  }

  reconnect(): void {
    if (this.#state.kind !== "down") return;
    const { since, held } = this.#state;
    this.#state = { kind: "up" };
    for (const act of held) act();
    for (const settle of [...this.#waiting]) settle(true);
    this.#notify({ kind: "reconnected", awayMs: Math.round(this.#clock.monotonic() - since) });
  }

  kill(): void {
    if (this.over) return;
    this.#state = { kind: "killed" };
    this.#listeners.clear();
    this.#waiting.clear();
  }

  close(): void {
    if (this.over) return;
    this.#state = { kind: "closed" };
    for (const settle of [...this.#waiting]) settle(false);
    this.#notify({ kind: "disconnected" });
    this.#listeners.clear();
  }

  /**
   * Resolves to true once connected; to false if not connected within the timeout, or closed. Never settles
   * once killed.
   */
  ready(timeoutMs: number): Promise<boolean> {
    if (this.#state.kind === "killed") return never();
    if (this.#state.kind !== "down") return Promise.resolve(this.#state.kind === "up");
    return new Promise((resolve) => {
      const settle = (up: boolean) => {
        timer.cancel();
        this.#waiting.delete(settle);
        resolve(up);
      };
      const timer = this.#clock.after(timeoutMs, () => {
        if (!this.killed) settle(false);
      });
      this.#waiting.add(settle);
    });
  }

  /**
   * The way to the broker. A sent message arrives even if its sender is killed meanwhile; false if the
   * connection broke.
   */
  async out(): Promise<boolean> {
    await this.#hop();
    if ((await this.#passed("outgoing")) === false) return false;
    return this.up || this.killed;
  }

  /** The way back: never settles for a client killed meanwhile; false if the connection broke. */
  async back(): Promise<boolean> {
    await this.#hop();
    const lost = (await this.#passed("incoming")) === false;
    return this.killed ? never() : this.up && !lost;
  }

  #hop(): Promise<void> {
    const ms = this.#fate.within("latencyMs");
    return ms > 0 ? new Promise((resolve) => this.#clock.after(ms, resolve)) : Promise.resolve();
  }

  /** Runs a client's callback and catches what it throws, as the real bus does. */
  guarded(where: string, act: () => void): void {
    this.#pass("incoming", () => this.#guarded(where, act));
  }

  #guarded(where: string, act: () => void): void {
    if (this.over) return;
    try {
      act();
    } catch (error) {
      const message = messageOf(error);
      this.#announce({ kind: "fault", where, code: "handler_threw", message, error });
    }
  }

  /** Sent now, or after the reconnect. */
  sendSoon(act: () => void): void {
    if (this.#state.kind === "down") {
      this.#state.held.push(() => this.sendSoon(act));
      return;
    }
    if (this.#state.kind !== "up") return;
    const ms = this.#fate.within("latencyMs");
    const sent = () => this.#pass("outgoing", act);
    // Once sent the message arrives, even if the sender dies.
    if (ms > 0) this.#clock.after(ms, sent);
    else sent();
  }

  /** A reply on its way to the requester. */
  receive(act: () => void): void {
    this.#pass("incoming", act);
  }

  /** An idempotent request: repeated after a disconnect until the timeout. */
  async ask<T>(act: () => T, timeoutMs = 5_000): Promise<T> {
    const deadline = this.#clock.monotonic() + timeoutMs;
    for (;;) {
      const left = deadline - this.#clock.monotonic();
      if (left <= 0 || !(await this.ready(left))) throw this.unavailable();
      const asked = this.#askOnce(act);
      const answer = this.stalled ? await this.inTime(asked, left) : await asked;
      if (answer) return answer.result;
    }
  }

  async #askOnce<T>(act: () => T): Promise<{ result: T } | undefined> {
    if (!(await this.out())) return undefined;
    const result = act();
    return (await this.back()) ? { result } : undefined;
  }

  /** If the work is held for too long, the caller gets undefined; the work still happens later. */
  inTime<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const giveUp = () => !this.killed && resolve(undefined);
      // A sleeping client notices the timeout when it wakes; one that has lost half of its connection notices
      // in time.
      const timer = this.#clock.after(ms, () =>
        this.#gates.incoming?.kind === "lost" ? giveUp() : this.#pass("incoming", giveUp),
      );
      const settled = () => timer.cancel();
      work.then(resolve, reject).finally(settled);
    });
  }

  unavailable(): Fault {
    return this.#state.kind === "closed"
      ? new Fault("transient", { code: "bus_closed", message: "the connection was closed" })
      : new Fault("transient", { code: "nats_unavailable", message: "the broker did not answer" });
  }

  #notify(state: BusState): void {
    for (const listener of [...this.#listeners]) listener(state);
  }
}

export const never = <T>(): Promise<T> => new Promise<T>(() => undefined);
