/**
 * The users of a day, and the answers they got: starts, signals, updates, cancels, each repeated until it is
 * acknowledged.
 */
import { Name, scheduleInstance } from "../../../schemas/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { HoldfastError, type StartOptions } from "../../../shared/sdk/index.ts";
import type { World } from "../../../shared/testing/world/world.ts";
import type { JournalEntry } from "../../../shared/verify/index.ts";
import type { Plan, PlannedProgram } from "./plan.ts";
import { expected, isSchedule, ofSecondGeneration, size } from "./programs.ts";

interface Ended {
  status: "completed" | "failed" | "cancelled" | "terminated";
  output: unknown;
  error: string | undefined;
}

export class Users {
  readonly journal: JournalEntry[] = [];
  readonly #world: World;
  readonly #plan: Plan;
  readonly #started: string[] = [];
  readonly #terminated = new Set<string>();
  /** Set when the last fault is over. */
  isHealed = false;

  constructor(world: World, plan: Plan) {
    this.#world = world;
    this.#plan = plan;
  }

  /** Again and again, as a careful user does, until it is acknowledged. */
  async surely<T>(act: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await act();
      } catch (error) {
        if (tries > 500) throw error;
        await this.#sleep(300);
      }
    }
  }

  /** Runs an action beside the rest of the day and ignores its outcome. */
  beside(work: Promise<unknown>): void {
    work.catch(() => undefined);
  }

  terminateSome(share: number): void {
    const id = this.#started[Math.floor(share * this.#started.length)];
    if (id === undefined) return;
    this.#terminated.add(id);
    const gone = unless("instance_not_found");
    this.beside(this.surely(() => this.#world.client.terminate(id, "by an operator").catch(gone)));
  }

  /** Without what retention has removed: those who saw its end can prove nothing of it any more. */
  async journalOfWhatIsThere(): Promise<JournalEntry[]> {
    if (this.#plan.retainForMs === undefined) return this.journal;
    const gone = new Set<string>();
    for (const entry of this.journal) {
      if (entry.kind !== "ended") continue;
      const status = await this.surely(() =>
        this.#world.client.status(entry.instanceId).catch(unless("instance_not_found")),
      );
      if (status === undefined) gone.add(entry.instanceId);
    }
    return this.journal.filter((entry) => !("instanceId" in entry) || !gone.has(entry.instanceId));
  }

  /** Runs a program to its end; returns what is wrong with that end. */
  async use(program: PlannedProgram, index: number): Promise<string[]> {
    const { client, clock } = this.#world;
    const name = program.kind === "any" ? "any" : program.name;
    await this.#sleep(program.atMs);
    if (ofSecondGeneration.has(name))
      while (clock.monotonic() < this.#secondGenerationMs) await this.#sleep(500);
    const id = isSchedule(name) ? await this.#schedule(`plan-${index}`) : `${name}-${index}`;
    const input = program.kind === "any" ? index : size;
    if (!isSchedule(name)) await this.surely(() => client.start(name, input, { id, ...this.#startOptions }));
    this.journal.push({ kind: "started", instanceId: id, ends: true });
    if (!isSchedule(name)) this.#started.push(id);
    const over = this.#result(id);
    if (name === "signals") this.beside(this.#signalAll(id, "tick"));
    if (name === "updated") this.beside(this.#updateAll(id));
    // Cancelled before the answer arrived: it has ended when it is asked again.
    if (name === "cancelled")
      await this.surely(() => client.cancel(id, "enough").catch(unless("instance_ended")));
    const ended = new AbortController();
    if (name === "any") this.beside(this.#endAny(id, ended.signal));
    const got = await over;
    ended.abort();
    const { status, output } = got;
    this.journal.push({ kind: "ended", instanceId: id, status, ...(status === "completed" && { output }) });
    return this.#judge(id, name, got);
  }

  get #startOptions(): Pick<StartOptions, "flow" | "delay"> {
    const { concurrency, delayMs } = this.#plan.starts ?? {};
    return {
      ...(concurrency !== undefined && { flow: { key: "day", concurrency } }),
      ...(delayMs !== undefined && { delay: delayMs }),
    };
  }

  /** When the last of the members has come to the second generation; few are begun on a day. */
  get #secondGenerationMs(): number {
    const { firstGenerationMs, generationStepMs } = this.#plan;
    return firstGenerationMs > 0 ? firstGenerationMs + 12 * generationStepMs : 0;
  }

  #judge(id: string, name: string, { status, output, error }: Ended): string[] {
    if (this.#terminated.has(id) && status === "terminated") return [];
    if (name === "any") return [];
    const wanted = expected[name];
    if (wanted === undefined) return status === "cancelled" ? [] : [`${id} ended ${status}: ${error}`];
    if (status !== "completed") return [`${id} ended ${status}: ${error}`];
    if (isSchedule(name)) return [];
    const right = JSON.stringify(wanted(size));
    const is = JSON.stringify(output);
    return is === right ? [] : [`${id} returned ${is.slice(0, 200)} instead of ${right.slice(0, 200)}`];
  }

  async #result(id: string): Promise<Ended> {
    for (;;) {
      try {
        const { status, output, error } = await this.#world.client.status(id);
        if (status !== "running" && status !== "pending" && status !== "parked")
          return { status, output, error: error && `${error.code} ${error.message}` };
      } catch {
        // no server, or none that answers
      }
      await this.#sleep(this.isHealed ? 1_000 : 2_000);
    }
  }

  async #schedule(id: string): Promise<string> {
    const spec = { orchestration: Name.parse("sequence"), input: size, every: "1s", limit: size } as const;
    await this.surely(() => this.#world.client.schedules.create(id, spec, { replace: true }));
    return scheduleInstance(id);
  }

  async #signalAll(id: string, name: string): Promise<void> {
    const messageId = (value: number) => `${id}-${name}-${value}`;
    const send = (value: number) =>
      this.#world.client.signal(id, name, value, { messageId: messageId(value) });
    for (let value = 0; value < size; value++) {
      // An operator has terminated it: its id may be free for another instance by the time of another try.
      const isOver = await this.surely(() =>
        send(value)
          .then(() => false)
          .catch((error: unknown) => unless("instance_ended")(error) ?? true),
      );
      if (isOver) return;
      const sent = { kind: "signalled", instanceId: id, name, sender: "user", value } as const;
      this.journal.push({ ...sent, messageId: messageId(value) });
      await this.#sleep(this.#plan.pauseMs);
      if (value > 0) this.#sendAgain(() => send(value - 1));
    }
  }

  async #updateAll(id: string): Promise<void> {
    const updateId = (value: number) => `${id}-update-${value}`;
    const send = (value: number) => this.#world.client.update(id, "add", value, { id: updateId(value) });
    for (let value = 0; value < size; value++) {
      const answer = await this.surely(() => send(value));
      this.journal.push({ kind: "updated", instanceId: id, updateId: updateId(value), answer });
      await this.#sleep(this.#plan.pauseMs);
      this.#sendAgain(() => send(value));
    }
  }

  /** Sent again although it was answered. The first generation records no message ids. */
  #sendAgain(send: () => Promise<unknown>): void {
    const { sendsAgain, firstGenerationMs } = this.#plan;
    if (sendsAgain && firstGenerationMs === 0) this.beside(send());
  }

  /** The test does not know what it waits for: it sends one of each, and then terminates it. */
  async #endAny(id: string, ended: AbortSignal): Promise<void> {
    while (!this.isHealed) await this.#sleep(1_000);
    for (let round = 0; round < 4 && !ended.aborted; round++) {
      // The sender of a signal to an ended instance gets that as an error.
      for (const name of ["a", "b"])
        await this.surely(() => this.#world.client.signal(id, name, round).catch(unless("instance_ended")));
      await this.#sleep(1_000);
    }
    await this.#sleep(6_000);
    if (!ended.aborted) await this.surely(() => this.#world.client.terminate(id, "the day is over"));
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(this.#world.clock, ms);
  }
}

/** Throws everything again but an error of this code. */
const unless =
  (code: string) =>
  (error: unknown): undefined => {
    if (!(error instanceof HoldfastError) || error.code !== code) throw error;
  };
