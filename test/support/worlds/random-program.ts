/** Random orchestrations: any nesting of durable operations, as data, and the code that runs them. */
import fc from "fast-check";
import {
  type BareSessionHandle,
  defineActivity,
  defineOrchestration,
  type OpenSessionOptions,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";

type Op =
  | { op: "run"; attempts: number; limit: "none" | "start" | "close" | "run" }
  | { op: "local"; attempts: number }
  | { op: "sleep"; ms: number }
  | { op: "signal"; name: string }
  | { op: "child"; session: number }
  | { op: "call"; session: number; attempts: number };

export type Step =
  | Op
  | { op: "all" | "race" | "any" | "settled"; of: Op[] }
  | { op: "open"; session: number; onLost: "fail" | "reclaim" | "rebuild"; lazy: boolean; limited: boolean }
  | { op: "close"; session: number }
  | { op: "effect" | "status" | "spawn" | "draw" | "again" }
  | { op: "scope"; of: Op[]; beside: Op }
  | { op: "tidy"; of: Op[] };

/** The last one belongs to another instance. */
const session = fc.nat({ max: 3 });
const own = fc.nat({ max: 2 });
export const lentSession = "lent";
const attempts = fc.integer({ min: 1, max: 3 });

const op: fc.Arbitrary<Op> = fc.oneof(
  fc.record({
    op: fc.constant("run" as const),
    attempts,
    limit: fc.constantFrom("none" as const, "start" as const, "close" as const, "run" as const),
  }),
  fc.record({ op: fc.constant("local" as const), attempts }),
  fc.record({ op: fc.constant("sleep" as const), ms: fc.nat({ max: 5000 }) }),
  fc.record({ op: fc.constant("signal" as const), name: fc.constantFrom("a", "b") }),
  fc.record({ op: fc.constant("child" as const), session }),
  { weight: 3, arbitrary: fc.record({ op: fc.constant("call" as const), session, attempts }) },
);
const ops = fc.array(op, { minLength: 1, maxLength: 3 });

const opening = fc.record({
  op: fc.constant("open" as const),
  session: own,
  onLost: fc.constantFrom("fail" as const, "reclaim" as const, "rebuild" as const),
  lazy: fc.boolean(),
  limited: fc.boolean(),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: op },
  { weight: 2, arbitrary: fc.record({ op: fc.constantFrom("all", "race", "any", "settled"), of: ops }) },
  { weight: 2, arbitrary: opening },
  fc.record({ op: fc.constant("close" as const), session }),
  fc.record({ op: fc.constantFrom("effect", "status", "spawn", "draw", "again") }),
  fc.record({ op: fc.constant("scope" as const), of: ops, beside: op }),
  fc.record({ op: fc.constant("tidy" as const), of: ops }),
);

/** Most begin with sessions: without any, what follows has little to lose. */
export const programs: fc.Arbitrary<Step[]> = fc
  .tuple(fc.array(opening, { maxLength: 2 }), fc.array(step, { minLength: 1, maxLength: 8, size: "max" }))
  .map(([opened, steps]) => [...opened, ...steps]);

const work = defineActivity("work", { run: async () => 0 });
const load = defineActivity("load", { run: async () => 0 });

const limits = {
  none: {},
  start: { scheduleToStart: 3000 },
  close: { scheduleToClose: 9000 },
  run: { startToClose: 2000 },
} as const;

class Run {
  readonly #sessions = new Map<number, BareSessionHandle>();
  readonly trace: unknown[] = [];

  #session(ctx: OrchestrationContext, index: number): BareSessionHandle | undefined {
    return index === 3 ? ctx.grantedSession(lentSession) : this.#sessions.get(index);
  }

  one(ctx: OrchestrationContext, what: Op): Promise<unknown> {
    switch (what.op) {
      case "run":
        return ctx.run(work, 0, { ...limits[what.limit], retry: { maxAttempts: what.attempts } });
      case "local":
        return ctx.local(work, 0, { retry: { maxAttempts: what.attempts } });
      case "sleep":
        return ctx.sleep(what.ms);
      case "signal":
        return ctx.waitForSignal(what.name);
      case "child": {
        const grant = this.#session(ctx, what.session);
        return ctx.child("kid", 0, grant ? { grant: [grant] } : {});
      }
      case "call": {
        const handle = this.#session(ctx, what.session);
        if (!handle) return Promise.resolve("no session");
        return handle.run(work, 1, { retry: { maxAttempts: what.attempts, initialDelay: 500 } });
      }
    }
  }

  /** As people write what they race: an operation, one with `then` behind it, or a helper. */
  #wrapped(ctx: OrchestrationContext, what: Op, index: number): Promise<unknown> {
    const helper = async () => await this.one(ctx, what);
    if (index % 3 === 2) return helper();
    return index % 3 === 1 ? this.one(ctx, what).then((value) => value) : this.one(ctx, what);
  }

  async step(ctx: OrchestrationContext, what: Step): Promise<unknown> {
    switch (what.op) {
      case "all":
        return await Promise.all(what.of.map((each) => this.one(ctx, each)));
      case "race":
        return await Promise.race(what.of.map((each, index) => this.#wrapped(ctx, each, index)));
      case "any":
        return await Promise.any(what.of.map((each, index) => this.#wrapped(ctx, each, index)));
      case "settled":
        return await Promise.allSettled(what.of.map((each) => this.one(ctx, each)));
      case "open":
        return await this.#open(ctx, what);
      case "close":
        return await this.#session(ctx, what.session)?.close();
      case "effect":
        return ctx.sideEffect(() => [Math.random() < 2, ctx.random() < 2]);
      case "status":
        return ctx.setStatus(this.trace.length);
      case "spawn":
        return ctx.spawn("kid", 0);
      case "draw":
        return [ctx.random(), ctx.uuid(), Math.random(), Date.now()];
      case "again":
        return ctx.execution < 3 ? ctx.continueAsNew(ctx.execution) : undefined;
      case "scope": {
        const scope = ctx.scope((inner) => Promise.all(what.of.map((each) => this.one(inner, each))));
        await this.one(ctx, what.beside).catch(() => undefined);
        scope.cancel("beside was quicker");
        return await scope.result;
      }
      case "tidy":
        return await ctx.uncancellable((inner) => Promise.all(what.of.map((each) => this.one(inner, each))));
      default:
        return await this.one(ctx, what);
    }
  }

  async #open(ctx: OrchestrationContext, what: Extract<Step, { op: "open" }>): Promise<string> {
    const options: OpenSessionOptions<undefined> = {
      onLost: what.onLost,
      lazy: what.lazy,
      recovery: { maxAutoRetries: 2, ...(what.onLost === "rebuild" ? { rebuild: { activity: load } } : {}) },
      ...(what.limited ? { executionTimeout: "1m" } : {}),
      // The first by its own name, the others by the engine's.
      ...(what.session === 0 ? { id: "mine" } : {}),
    };
    const handle = await ctx.openSession(options);
    this.#sessions.set(what.session, handle);
    return handle.id;
  }
}

/** What goes wrong is part of its result. */
export async function runProgram(ctx: OrchestrationContext, program: readonly Step[]): Promise<unknown[]> {
  const run = new Run();
  for (const what of program) {
    try {
      run.trace.push(await run.step(ctx, what));
    } catch (error) {
      // Continue-as-new is no error; a cancelled instance should end.
      if (!(error instanceof Error) || ctx.signal.aborted) throw error;
      run.trace.push((error as { code?: string }).code ?? error.name);
    }
  }
  return run.trace;
}

/** What programs ask of workers. */
export const programWork = { work, load };

export const appOf = (program: readonly Step[]) => ({
  ...programWork,
  program: defineOrchestration("program", { run: (ctx) => runProgram(ctx, program) }),
});
