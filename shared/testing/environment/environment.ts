/** The engine for tests: one process, no server, time that skips, members that die on request. */

import { refuseMiscompiled } from "../../app-loading/refuse-miscompiled.ts";
import type {
  ActivityContext,
  ActivityDefinition,
  AnySession,
  Call,
  CallContext,
  CallsOf,
  ConfigOf,
  InitContext,
} from "../../definitions/index.ts";
import { type App, collectApp } from "../../definitions/index.ts";
import { messageOf } from "../../errors/index.ts";
import { type Duration, parseDuration, type Random, seededRandom, sleep } from "../../runtime/index.ts";
import type { Client, InstanceHandle } from "../../sdk/index.ts";
import { type Instant, instantOf } from "../clock/instant.ts";
import { UserCode } from "../fakes/user-code.ts";
import { type ExpectedEvent, historyDifference } from "../history/expected-event.ts";
import { checkHistory } from "../history/history-laws.ts";
import { historyTable } from "../history/history-table.ts";
import { someFaults } from "../memory/index.ts";
import { checkFake, checkKill, checkOptions, checkSeeds, checkSessionFake } from "./check-options.ts";
import { driven } from "./drive-virtual-time.ts";
import { EnvironmentMembers } from "./environment-members.ts";
import type { FaultPointName, TestEnvironmentOptions } from "./options.ts";
import type { SystemOptions, TestSystem } from "./system.ts";
import { TwinSystem } from "./twin-system.ts";

type MaybePromise<T> = Promise<T> | T;

/** Fakes for the calls of a session type, each with the types of the real call. */
export type CallFakes<D extends AnySession> = {
  [K in keyof CallsOf<D>]?: CallsOf<D>[K] extends Call<infer S, infer I, infer O>
    ? (state: S, input: I, ctx: CallContext) => MaybePromise<O>
    : never;
};

/** At which fault point a member is to die, and at which visit. */
export interface KillOptions {
  /** Undefined: now. */
  at?: FaultPointName;
  /** The n-th time that fault point is reached from now on. Default 1. */
  count?: number;
}

/** An instance by its id or by its handle. */
export type InstanceRef = string | Pick<InstanceHandle, "instanceId">;

/**
 * A whole engine for one test. Time stands still until the test awaits a method of `client` or calls `skip`;
 * then it jumps to the next event, as fast as the work allows.
 */
export class TestEnvironment implements AsyncDisposable {
  /** The client as in production; awaiting its methods lets virtual time pass. */
  readonly client: Client;
  /** Pass it to `testEnvironment` to repeat the same run. */
  readonly seed: number;
  readonly #options: TestEnvironmentOptions;
  readonly #app: App;
  readonly #dice: Random;
  readonly #code: UserCode;
  readonly #members: EnvironmentMembers;
  readonly #system: TestSystem;
  #closed: Promise<void> | undefined;

  private constructor(
    options: TestEnvironmentOptions,
    parts: { app: App; code: UserCode; members: EnvironmentMembers; system: TestSystem },
  ) {
    this.seed = options.seed ?? 1;
    this.#options = options;
    this.#app = parts.app;
    this.#dice = seededRandom(this.seed);
    this.#code = parts.code;
    this.#members = parts.members;
    this.#system = parts.system;
    const drive = this.#drive;
    this.client = driven(parts.system.client, drive);
    for (const part of [this.client.sessions, this.client.workers, this.client.dead, this.client.schedules])
      driven(part, drive);
  }

  /** Creates and starts an environment with as many members as the options say. */
  static async create(options: TestEnvironmentOptions): Promise<TestEnvironment> {
    checkOptions(options);
    const app = appOf(options.app);
    const code = new UserCode();
    const members = new EnvironmentMembers(code);
    const system = await systemOf(options, {
      app: code.watched(app),
      seed: options.seed ?? 1,
      alwaysReplay: options.alwaysReplay ?? true,
      startsAt: startOf(options),
      onPoint: members.reach,
      busy: () => code.busy,
      progress: () => members.commits,
      stuck: (lines) => stuck(options.seed ?? 1, lines),
    });
    const env = new TestEnvironment(options, { app, code, members, system });
    const { workers = 2, orchestrators = 1 } = options;
    try {
      await system.prepare();
      await members.start(system, { workers, orchestrators });
      return env;
    } catch (error) {
      await env.close();
      throw error;
    }
  }

  /** The environment's current time. */
  now(): Date {
    return new Date(this.#system.clock.now());
  }

  /**
   * Lets this much time pass at once: timers, retries, timeouts and schedules that become due meanwhile fire
   * in order.
   */
  skip(duration: Duration): Promise<void> {
    return this.#system.skip(parseDuration(duration, "skip"));
  }

  /** Lets time pass until an instant or a local time of a time zone, such as `"2027-03-28T02:30"`. */
  async skipTo(instant: Instant, timeZone: string = this.#options.timeZone ?? "UTC"): Promise<void> {
    const ms = instantOf(instant, timeZone, "skipTo") - this.#system.clock.now();
    if (ms < 0)
      throw new Error(
        `skipTo: ${String(instant)} has passed; it is ${this.now().toISOString()} in this test`,
      );
    await this.#system.skip(ms);
  }

  /** For fakes: sleeps this long in the environment's time. */
  async sleep(duration: Duration, signal?: AbortSignal): Promise<void> {
    await this.#code.asleep(sleep(this.#system.clock, parseDuration(duration, "sleep"), signal));
  }

  /** For tests and fakes: a number in [0, 1), determined by the seed. */
  random(): number {
    return this.#dice.next();
  }

  /** Awaits any other promise that depends on the environment's time. */
  wait<T>(work: Promise<T>): Promise<T> {
    return this.#drive(work);
  }

  /** Runs this function in place of the activity, from now on. */
  fake<I, O>(
    activity: ActivityDefinition<I, O>,
    code: (input: I, ctx: ActivityContext) => MaybePromise<O>,
  ): void {
    checkFake(this.#app, activity.name, code);
    this.#code.fakeActivity(activity.name, (ctx, input) => code(input, ctx));
  }

  /**
   * Runs these functions in place of the session type's calls; `init` makes the state if the real one is not
   * suitable.
   */
  fakeSession<D extends AnySession>(
    type: D,
    calls: CallFakes<D>,
    init?: (config: ConfigOf<D>, ctx: InitContext) => unknown,
  ): void {
    checkSessionFake(this.#app, type.name, calls);
    for (const [name, code] of Object.entries(calls))
      if (typeof code === "function") this.#code.fakeCall(type.name, name, code);
    if (init) this.#code.fakeInit(type.name, (ctx, config) => init(config, ctx));
  }

  /**
   * Kills the worker that holds the session: its state is lost, and another worker takes over as in
   * production. With `at`, the next member that reaches that fault point dies there instead; at a fault point
   * of sessions, the next that reaches it with this session. `session`: its id, or its type if there is only
   * one.
   */
  async kill(session: string | AnySession, { at, count = 1 }: KillOptions = {}): Promise<void> {
    checkKill(this.#app, session, at, count);
    if (at !== undefined) {
      this.#members.dieAt(at, count, typeof session === "string" ? { id: session } : { type: session.name });
      return;
    }
    const held = (await this.client.sessions.list()).find(
      ({ sessionId, type, workerId }) =>
        workerId !== undefined &&
        (typeof session === "string" ? sessionId === session : type === session.name),
    );
    if (!held?.workerId) {
      const which = typeof session === "string" ? `session ${session}` : `a session of type ${session.name}`;
      throw new Error(
        `no worker holds ${which} now: let its instance open it first, or choose a fault point with { at }`,
      );
    }
    await this.killWorker(held.workerId);
  }

  /** Kills a worker, this one or any, and starts another in its place. */
  killWorker(workerId?: string): Promise<void> {
    return this.#members.kill("worker", workerId);
  }

  /** Kills an orchestrator and starts another in its place. */
  killOrchestrator(id?: string): Promise<void> {
    return this.#members.kill("orchestrator", id);
  }

  /** The server is unreachable for this long, for every member. */
  outage(duration: Duration): Promise<void> {
    return this.#system.outage(parseDuration(duration, "outage"));
  }

  /** How often each fault point was reached so far. */
  get reached(): ReadonlyMap<FaultPointName, number> {
    return this.#members.reached;
  }

  /**
   * Runs the test in a fresh environment once without a fault, and then once for every fault point that run
   * has reached, killing the first member that reaches it. The error of a failed run names the fault point.
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
    if (at !== undefined) env.#members.dieAt(at, 1);
    try {
      await test(env);
    } catch (error) {
      const where = at === undefined ? "without any fault" : `with a death at "${at}"`;
      throw await failedRun(env, `${where} (seed ${env.seed})`, error);
    }
    return [...env.#members.reached.keys()];
  }

  /** The history as a table for people. */
  async history(instance: InstanceRef): Promise<string> {
    return historyTable(await this.client.history(idOf(instance)));
  }

  /**
   * Compares the listed events, by kind or with some of their fields, with the recorded ones, in order; kinds
   * that are not listed do not count. Also checks the laws that hold in every history. The error shows the
   * first difference and the whole history.
   */
  async expectHistory(instance: InstanceRef, expected: readonly ExpectedEvent[]): Promise<void> {
    const id = idOf(instance);
    const { commits } = await this.client.historyFile(id);
    checkHistory(commits);
    const entries = await this.client.history(id);
    const difference = historyDifference(expected, entries);
    if (difference === undefined) return;
    throw new OtherHistoryError(
      `the history of ${id} is another (seed ${this.seed}):\n${difference}\n\nAll of it:\n${historyTable(entries)}`,
    );
  }

  /** Ends every member and closes everything. `await using` calls it; may be called twice. */
  close(): Promise<void> {
    this.#members.killAll();
    this.#closed ??= this.#system.close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  readonly #drive = <T>(work: Promise<T>): Promise<T> => this.#system.wait(work);
}

/**
 * Starts an engine for one test.
 *
 * @example
 * ```ts
 * import * as app from "./app.ts";
 *
 * test("an order is paid", async () => {
 *   await using env = await testEnvironment({ app });
 *   const order = await env.client.start(app.order, { item: "book" });
 *   await env.skip("1d");
 *   await order.signal("paid");
 *   expect(await order.result()).toBe("shipped");
 * });
 * ```
 */
export const testEnvironment = (options: TestEnvironmentOptions): Promise<TestEnvironment> =>
  TestEnvironment.create(options);

/**
 * Runs the test once for each seed, each in an environment of its own, until one fails. The error names the
 * seed; `testEnvironment({ app, seed })` repeats that run.
 *
 * @example
 * ```ts
 * await everySeed({ app, seeds: 50, faults: "some" }, async (env) => {
 *   const handle = await env.client.start(app.transfer, { from: "a", to: "b", amount: 5 });
 *   await handle.result();
 * });
 * ```
 */
export async function everySeed(
  options: Omit<TestEnvironmentOptions, "seed"> & { seeds: number | readonly number[] },
  test: (env: TestEnvironment) => Promise<void>,
): Promise<void> {
  const { seeds, ...rest } = options;
  checkSeeds(seeds);
  const all = typeof seeds === "number" ? Array.from({ length: seeds }, (_, index) => index + 1) : seeds;
  for (const seed of all) {
    await using env = await testEnvironment({ ...rest, seed });
    try {
      await test(env);
    } catch (error) {
      throw await failedRun(env, `with seed ${seed}`, error);
    }
  }
}

/** Its message shows the whole history. */
class OtherHistoryError extends Error {}

/** How many histories the error of a failed run shows. */
const shownHistories = 3;

async function failedRun(env: TestEnvironment, which: string, error: unknown): Promise<Error> {
  const shown = error instanceof OtherHistoryError ? [] : await newestHistories(env).catch(() => []);
  return new Error([`failed ${which}: ${messageOf(error)}`, ...shown].join("\n\n"), { cause: error });
}

async function newestHistories(env: TestEnvironment): Promise<string[]> {
  const tables: string[] = [];
  for (const { instanceId } of await env.client.list({ limit: shownHistories }))
    tables.push(`The history of ${instanceId}:\n${await env.history(instanceId)}`);
  return tables;
}

async function systemOf({ nats, faults }: TestEnvironmentOptions, parts: SystemOptions): Promise<TestSystem> {
  if (nats === undefined)
    return new TwinSystem(parts, faults === "some" ? someFaults : faults === "none" || !faults ? {} : faults);
  if (faults !== undefined && faults !== "none")
    throw new Error('faults are for tests without a server: leave out "faults", or "nats"');
  const { ServerSystem } = await import("../server/server-system.ts");
  return ServerSystem.create(nats, parts);
}

const stuck = (seed: number, lines: readonly string[]): Error =>
  new Error(
    [
      `what the test waits for will not come: no timer is set, no code runs, and no message is under way (seed ${seed}).`,
      "Perhaps an instance waits for a signal that was never sent.",
      ...lines,
    ].join("\n"),
  );

const startOf = ({ startsAt, timeZone = "UTC" }: TestEnvironmentOptions): number | undefined =>
  startsAt === undefined ? undefined : instantOf(startsAt, timeZone, "startsAt");

const isApp = (app: TestEnvironmentOptions["app"]): app is App =>
  app.orchestrations instanceof Map && app.activities instanceof Map && app.sessions instanceof Map;

function appOf(given: TestEnvironmentOptions["app"]): App {
  const app = isApp(given) ? given : collectApp({ ...given });
  refuseMiscompiled(app, "under test");
  return app;
}

const idOf = (instance: InstanceRef): string =>
  typeof instance === "string" ? instance : instance.instanceId;
