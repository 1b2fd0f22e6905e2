/** The engine as a test uses it: one process, no server, time that skips, members that die when they are told to. */
import type { ActivityContext, ActivityDefinition } from "../../definitions/activity.ts";
import { type App, collectApp } from "../../definitions/index.ts";
import type {
  AnySession,
  Call,
  CallContext,
  CallsOf,
  ConfigOf,
  InitContext,
} from "../../definitions/session.ts";
import { type Duration, parseDuration, type Random, seededRandom, sleep } from "../../runtime/index.ts";
import type { Client, InstanceHandle } from "../../sdk/index.ts";
import { TimeKeeper } from "../clock/time-keeper.ts";
import { keyOf, UserCode } from "../fakes/user-code.ts";
import { checkHistory } from "../history/history-laws.ts";
import { firstDifference, historyTable } from "../history/history-table.ts";
import { noFaults, someFaults } from "../memory/index.ts";
import { type Member, World } from "../world/world.ts";
import { driven } from "./driven.ts";
import { type FaultPointName, faultPoints, type TestEnvironmentOptions } from "./options.ts";

type MaybePromise<T> = Promise<T> | T;

/** Stand-ins for the calls of a session type, each with the types of what it stands for. */
export type CallFakes<D extends AnySession> = {
  [K in keyof CallsOf<D>]?: CallsOf<D>[K] extends Call<infer S, infer I, infer O>
    ? (state: S, input: I, ctx: CallContext) => MaybePromise<O>
    : never;
};

/** Where and how often somebody is to die. */
export interface KillOptions {
  /** Absent: now. */
  at?: FaultPointName;
  /** The n-th time that place is reached from now on. Default 1. */
  count?: number;
}

/** An instance by its id, or by the handle of whoever started it. */
export type InstanceRef = string | Pick<InstanceHandle, "instanceId">;

interface Trap {
  point: string;
  left: number;
}

type Service = "worker" | "orchestrator";

/**
 * A whole engine for one test. Time stands still until the test awaits something of `client` or calls `skip`; then it
 * skips to whatever comes next, as fast as the work allows.
 */
export class TestEnvironment implements AsyncDisposable {
  /** Starts, signals, queries and looks as in production; awaiting it lets virtual time pass. */
  readonly client: Client;
  /** Give it to `testEnvironment` to have the same run again. */
  readonly seed: number;
  readonly #options: TestEnvironmentOptions;
  readonly #dice: Random;
  readonly #code = new UserCode();
  readonly #world: World;
  readonly #time: TimeKeeper;
  readonly #members = new Map<string, { service: Service; member: Member }>();
  readonly #reached = new Map<FaultPointName, number>();
  #traps: Trap[] = [];
  #commits = 0;
  #disposed = false;

  private constructor(options: TestEnvironmentOptions) {
    const { app, seed = 1, faults = "none", alwaysReplay = true } = options;
    this.#options = options;
    this.seed = seed;
    this.#dice = seededRandom(seed);
    this.#world = new World({
      seed,
      alwaysReplay,
      app: this.#code.watched(appOf(app)),
      faults: { ...noFaults, ...(faults === "some" ? someFaults : faults === "none" ? {} : faults) },
      keepEnded: true,
      // More of them would only be more to keep up.
      partitions: 1,
      // Whoever waits for a member to come up lets time pass, not the member itself.
      drive: (work) => work,
      onPoint: (point, memberId, die) => this.#reach(point, memberId, die),
    });
    this.#time = new TimeKeeper({
      clock: this.#world.clock,
      busy: () => this.#code.busy,
      progress: () => this.#commits,
      stuck: () => this.#stuck(),
    });
    const drive = this.#drive;
    this.client = driven(this.#world.client, drive);
    for (const part of [this.client.sessions, this.client.workers, this.client.dead]) driven(part, drive);
  }

  /** Started, with as many members as the options say. */
  static async create(options: TestEnvironmentOptions): Promise<TestEnvironment> {
    const env = new TestEnvironment(options);
    const { workers = 2, orchestrators = 1 } = options;
    await env.#drive(env.#world.prepare());
    for (let i = 0; i < orchestrators; i++) await env.#drive(env.#join("orchestrator"));
    for (let i = 0; i < workers; i++) await env.#drive(env.#join("worker"));
    await env.#drive(env.#world.watcher());
    return env;
  }

  /** The time of this world. */
  now(): Date {
    return new Date(this.#world.clock.now());
  }

  /** Lets so much time pass at once: timers, retries, timeouts and schedules that fall due meanwhile do so in order. */
  skip(duration: Duration): Promise<void> {
    return this.#time.skip(parseDuration(duration, "skip"));
  }

  /** For fakes: takes so long by the time of this world. */
  async sleep(duration: Duration, signal?: AbortSignal): Promise<void> {
    await this.#code.asleep(sleep(this.#world.clock, parseDuration(duration, "sleep"), signal));
  }

  /** For tests and fakes: in [0, 1), by the seed. */
  random(): number {
    return this.#dice.next();
  }

  /** Awaits whatever else depends on the time of this world. */
  wait<T>(work: Promise<T>): Promise<T> {
    return this.#drive(work);
  }

  /** Runs this in the place of the activity, from now on. */
  fake<I, O>(
    activity: ActivityDefinition<I, O>,
    code: (input: I, ctx: ActivityContext) => MaybePromise<O>,
  ): void {
    this.#code.fake(keyOf.activity(activity.name), (ctx: ActivityContext, input: I) => code(input, ctx));
  }

  /** Runs these in the place of calls of the session type; `init` makes the state where the real one would not do. */
  fakeSession<D extends AnySession>(
    type: D,
    calls: CallFakes<D>,
    init?: (config: ConfigOf<D>, ctx: InitContext) => unknown,
  ): void {
    for (const [name, code] of Object.entries(calls)) {
      if (typeof code !== "function") continue;
      this.#code.fake(keyOf.call(type.name, name), (state, input, ctx) => code(state, input, ctx));
    }
    if (init) this.#code.fake(keyOf.init(type.name), (ctx: InitContext, config) => init(config, ctx));
  }

  /**
   * Kills the worker that holds the session: its state is gone, and another worker hears of it as in production. With
   * `at`, whoever next reaches that place dies there instead. `session`: its id, or its type where there is one of it.
   */
  async kill(session: string | AnySession, { at, count = 1 }: KillOptions = {}): Promise<void> {
    if (at !== undefined) {
      this.#traps.push({ point: faultPoints[at], left: count });
      return;
    }
    const held = (await this.client.sessions.list()).find(
      ({ sessionId, type, workerId }) =>
        workerId !== undefined &&
        (typeof session === "string" ? sessionId === session : type === session.name),
    );
    if (!held?.workerId) {
      const which = typeof session === "string" ? `session ${session}` : `a session of type ${session.name}`;
      throw new Error(`nobody holds ${which} now: let its instance open it first, or say where with { at }`);
    }
    await this.killWorker(held.workerId);
  }

  /** Kills a worker, any or this one, and starts another in its place. */
  killWorker(workerId?: string): Promise<void> {
    return this.#kill("worker", workerId);
  }

  /** Kills an orchestrator and starts another in its place. */
  killOrchestrator(id?: string): Promise<void> {
    return this.#kill("orchestrator", id);
  }

  /** The server is away for so long, for everybody. */
  async outage(duration: Duration): Promise<void> {
    this.#world.broker.stop();
    await this.skip(duration);
    this.#world.broker.start();
    await this.skip(0);
  }

  /** How often each place was reached so far where somebody could have died. */
  get reached(): ReadonlyMap<FaultPointName, number> {
    return this.#reached;
  }

  /**
   * Runs the test in a fresh environment once without a fault, and then once for every place that run has reached, with
   * whoever reaches it first killed there. The error of a failed run says which place it was.
   */
  async everyFaultPoint(test: (env: TestEnvironment) => Promise<void>): Promise<FaultPointName[]> {
    const places = await this.#runAt(undefined, test);
    for (const at of places) await this.#runAt(at, test);
    return places;
  }

  async #runAt(
    at: FaultPointName | undefined,
    test: (env: TestEnvironment) => Promise<void>,
  ): Promise<FaultPointName[]> {
    await using env = await TestEnvironment.create(this.#options);
    if (at !== undefined) await env.kill("", { at });
    try {
      await test(env);
    } catch (error) {
      const where = at === undefined ? "without any fault" : `with a death at "${at}"`;
      throw new Error(`failed ${where} (seed ${env.seed}): ${messageOf(error)}`, { cause: error });
    }
    return [...env.#reached.keys()];
  }

  /** The history as a table for people. */
  async history(instance: InstanceRef): Promise<string> {
    return historyTable(await this.client.history(idOf(instance)));
  }

  /**
   * Compares the kinds of the events, all of them or those the list names, with what happened; also checks what holds in
   * every history. The error shows the first difference and the whole history.
   */
  async expectHistory(instance: InstanceRef, kinds: readonly string[]): Promise<void> {
    const id = idOf(instance);
    const { commits } = await this.client.historyFile(id);
    checkHistory(commits);
    const entries = await this.client.history(id);
    const named = new Set(kinds);
    const happened = entries.map(({ kind }) => kind).filter((kind) => named.has(kind));
    const difference = firstDifference(kinds, happened);
    if (difference === undefined) return;
    throw new Error(
      `the history of ${id} is another (seed ${this.seed}):\n${difference}\n\nAll of it:\n${historyTable(entries)}`,
    );
  }

  /** Ends all of it. Nothing stays open. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    for (const { member } of this.#members.values()) member.kill();
    this.#world.broker.stop();
    this.#world.outside.kill();
  }

  readonly #drive = <T>(work: Promise<T>): Promise<T> => this.#time.wait(work);

  async #join(service: Service): Promise<void> {
    const member = await (service === "worker" ? this.#world.worker() : this.#world.orchestrator());
    this.#members.set(member.id, { service, member });
  }

  async #kill(service: Service, id: string | undefined): Promise<void> {
    const victim = [...this.#members].find(
      ([each, { service: of }]) => of === service && (id === undefined || each === id),
    );
    if (!victim) throw new Error(`there is no ${service}${id === undefined ? "" : ` ${id}`} to kill`);
    const [victimId, { member }] = victim;
    member.kill();
    await this.#drive(this.#replace(service, victimId));
  }

  async #replace(service: Service, id: string): Promise<void> {
    this.#members.delete(id);
    this.#code.forget(id);
    await this.#join(service);
  }

  #reach(point: string, memberId: string, die: () => void): void {
    if (point === "turn.after_append") this.#commits++;
    for (const [name, of] of Object.entries(faultPoints))
      if (of === point && isFaultPointName(name)) this.#reached.set(name, (this.#reached.get(name) ?? 0) + 1);
    const trap = this.#traps.find((each) => each.point === point);
    if (!trap || --trap.left > 0 || this.#disposed) return;
    this.#traps = this.#traps.filter((each) => each !== trap);
    const service = this.#members.get(memberId)?.service;
    if (!service) return;
    die();
    // Whoever waits for something lets time pass for this too.
    void this.#replace(service, memberId);
  }

  async #stuck(): Promise<Error> {
    const { broker } = this.#world;
    const lines: string[] = [];
    if (!broker.isUp) lines.push("the server is away");
    for (const happening of this.#world.happenings.filter(({ kind }) => kind === "instance.parked").slice(-3))
      lines.push(JSON.stringify(happening));
    return new Error(
      [
        `what the test waits for will not come: no timer is set, no code runs, and no message is under way (seed ${this.seed}).`,
        "Perhaps an instance waits for a signal nobody has sent.",
        ...lines,
      ].join("\n"),
    );
  }
}

/** Starts an engine for one test: `await using env = await testEnvironment({ app })`. */
export const testEnvironment = (options: TestEnvironmentOptions): Promise<TestEnvironment> =>
  TestEnvironment.create(options);

/**
 * Runs the test once for each seed, each in an environment of its own, until one fails. The error names the seed;
 * `testEnvironment({ app, seed })` has the same run again.
 */
export async function everySeed(
  options: Omit<TestEnvironmentOptions, "seed"> & { seeds: number | readonly number[] },
  test: (env: TestEnvironment) => Promise<void>,
): Promise<void> {
  const { seeds, ...rest } = options;
  const all = typeof seeds === "number" ? Array.from({ length: seeds }, (_, index) => index + 1) : seeds;
  for (const seed of all) {
    await using env = await testEnvironment({ ...rest, seed });
    try {
      await test(env);
    } catch (error) {
      throw new Error(`failed with seed ${seed}: ${messageOf(error)}`, { cause: error });
    }
  }
}

const isApp = (app: TestEnvironmentOptions["app"]): app is App =>
  app.orchestrations instanceof Map && app.activities instanceof Map && app.sessions instanceof Map;

const appOf = (app: TestEnvironmentOptions["app"]): App => (isApp(app) ? app : collectApp({ ...app }));

const isFaultPointName = (name: string): name is FaultPointName => name in faultPoints;

const idOf = (instance: InstanceRef): string =>
  typeof instance === "string" ? instance : instance.instanceId;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
