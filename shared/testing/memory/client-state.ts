/** Whether one client can reach the broker, and what waits until it can again. */
import type { BusState } from "../../bus/bus.ts";
import { Fault } from "../../errors/index.ts";
import type { Announce, Clock } from "../../runtime/index.ts";
import type { Fate } from "./faults.ts";

/** As seen from the client. */
export type Direction = "outgoing" | "incoming";

export class ClientState {
  readonly #clock: Clock;
  readonly #fate: Fate;
  readonly #announce: Announce;
  readonly #listeners = new Set<(state: BusState) => void>();
  readonly #waiting = new Set<(up: boolean) => void>();
  /** Traffic that is held up on its way, in order; absent where it flows. */
  readonly #gates: Record<Direction, (() => void)[] | undefined> = {
    outgoing: undefined,
    incoming: undefined,
  };
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

  /** What goes this way waits, in order, until it is let through: a stalled network, or a process that sleeps. */
  hold(direction: Direction): void {
    this.#gates[direction] ??= [];
  }

  letThrough(direction: Direction): void {
    const held = this.#gates[direction];
    this.#gates[direction] = undefined;
    for (const pass of held ?? []) pass();
  }

  get stalled(): boolean {
    return this.#gates.outgoing !== undefined || this.#gates.incoming !== undefined;
  }

  #pass(direction: Direction, act: () => void): void {
    const held = this.#gates[direction];
    if (held) held.push(act);
    else act();
  }

  #passed(direction: Direction): Promise<void> | undefined {
    const held = this.#gates[direction];
    return held && new Promise((resolve) => held.push(resolve));
  }

  disconnect(): void {
    if (this.#state.kind !== "up") return;
    this.#state = { kind: "down", since: this.#clock.monotonic(), held: [] };
    this.#tell({ kind: "disconnected" });
  }

  reconnect(): void {
    if (this.#state.kind !== "down") return;
    const { since, held } = this.#state;
    this.#state = { kind: "up" };
    for (const act of held) act();
    for (const settle of [...this.#waiting]) settle(true);
    this.#tell({ kind: "reconnected", awayMs: Math.round(this.#clock.monotonic() - since) });
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
    this.#tell({ kind: "disconnected" });
    this.#listeners.clear();
  }

  /** True as soon as connected; false when not for so long, or closed. Never settles once killed. */
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

  /** To the broker. What was sent arrives even if its sender is killed meanwhile; false where the wire broke. */
  async out(): Promise<boolean> {
    await this.#hop();
    await this.#passed("outgoing");
    return this.up || this.killed;
  }

  /** And back: never settles for a client killed meanwhile; false where the wire broke. */
  async back(): Promise<boolean> {
    await this.#hop();
    await this.#passed("incoming");
    return this.killed ? never() : this.up;
  }

  #hop(): Promise<void> {
    const ms = this.#fate.within("latencyMs");
    return ms > 0 ? new Promise((resolve) => this.#clock.after(ms, resolve)) : Promise.resolve();
  }

  /** Runs what the client gave us; what it throws is its own affair, as on the real bus. */
  guarded(where: string, act: () => void): void {
    this.#pass("incoming", () => this.#guarded(where, act));
  }

  #guarded(where: string, act: () => void): void {
    if (this.over) return;
    try {
      act();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
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
    // Once sent it arrives, even if the sender dies.
    if (ms > 0) this.#clock.after(ms, sent);
    else sent();
  }

  /** An answer on its way to whoever asked. */
  receive(act: () => void): void {
    this.#pass("incoming", act);
  }

  /** A question that may be asked again: repeated after a disconnect until the time is over. */
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

  /** What is held up for too long happens all the same, unknown to whoever waited for it. */
  inTime<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(ms, () =>
        this.#pass("incoming", () => !this.killed && resolve(undefined)),
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

  #tell(state: BusState): void {
    for (const listener of [...this.#listeners]) listener(state);
  }
}

export const never = <T>(): Promise<T> => new Promise<T>(() => undefined);
