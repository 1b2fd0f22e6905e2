/** Things that can happen to an instance, for `given` and `when` of a story. */
import type { Failure, SessionState } from "../../../schemas/index.ts";
import type {
  ActivityDefinition,
  AnyOrchestration,
  AnySession,
  Call,
  CallsOf,
  OrchestrationDefinition,
  SignalDefinition,
  UpdateDefinition,
} from "../../definitions/index.ts";
import { nextDeadline } from "../../replay/index.ts";
import { type Duration, parseDuration } from "../../runtime/index.ts";
import type { Bench } from "./instance-bench.ts";
import * as messages from "./messages.ts";

/** One thing that happens to an instance. */
export interface Fact {
  /** As shown in the output of a failed test. */
  readonly about: string;
  /** @internal */
  happen(bench: Bench): Promise<void>;
}

/** An error as a test writes it: a message is enough. */
export type GivenError = string | (Partial<Failure> & { message: string });

const fact = (about: string, happen: (bench: Bench) => Promise<unknown>): Fact => ({
  about,
  happen: async (bench) => {
    await happen(bench);
  },
});

const failureOf = (error: GivenError): Partial<Failure> =>
  typeof error === "string" ? { message: error, code: "Error" } : { code: "Error", ...error };

/** The longest waiting task of this activity completes. */
export const completed = <I, O>(activity: ActivityDefinition<I, O>, output: NoInfer<O>): Fact =>
  fact(`completed(${activity.name})`, (bench) => {
    const { id, attempt } = openTask(bench, activity.name);
    return bench.turn(messages.completed(id, output, { attempt, execution: bench.state.execution }));
  });

/** An attempt of the activity fails; its retry policy decides whether there is another. */
export const failed = <I, O>(activity: ActivityDefinition<I, O>, error: GivenError): Fact =>
  fact(`failed(${activity.name})`, (bench) => {
    const { id, attempt } = openTask(bench, activity.name);
    return bench.turn(messages.failed(id, failureOf(error), { attempt, execution: bench.state.execution }));
  });

/** A signal arrives. */
export function signalled(signal: string, payload?: unknown): Fact;
export function signalled<P>(signal: SignalDefinition<P>, payload: P): Fact;
export function signalled(signal: string | { readonly name: string }, payload?: unknown): Fact {
  const name = typeof signal === "string" ? signal : signal.name;
  return fact(`signalled(${name})`, (bench) => bench.turn(messages.signal(name, payload)));
}

/** An update arrives. If the code refuses it, the story fails. */
export const updated = <I, O>(update: UpdateDefinition<I, O>, input: NoInfer<I>): Fact =>
  fact(`updated(${update.name})`, async (bench) => {
    const before = bench.events.length;
    const id = `${update.name}-${before}`;
    const { verdicts } = await bench.turn(messages.update(update.name, input, id));
    const [verdict] = verdicts;
    if (verdict !== "facts") throw new Error(`the code refused it (${verdict})`);
  });

/** This much time passes; everything that becomes due meanwhile happens in order. */
export const elapsed = (duration: Duration): Fact =>
  fact(`elapsed(${duration})`, async (bench) => {
    const until = bench.now + parseDuration(duration, "elapsed");
    for (let due = nextDeadline(bench.state); due !== undefined && due <= until; ) {
      bench.now = Math.max(bench.now, due);
      await bench.turn(messages.wake());
      const next = nextDeadline(bench.state);
      // The timer is due and nothing happened: it waits for something else.
      if (next === due) break;
      due = next;
    }
    bench.now = Math.max(bench.now, until);
  });

/** The longest waiting child of this orchestration completes. */
export const childCompleted = <I, O>(child: OrchestrationDefinition<I, O>, output: NoInfer<O>): Fact =>
  fact(`childCompleted(${child.name})`, (bench) =>
    bench.turn(messages.childDone(openChild(bench, child), output, bench.state.execution)),
  );

/** The longest waiting child of this orchestration fails. */
export const childFailed = (child: AnyOrchestration, error: GivenError): Fact =>
  fact(`childFailed(${child.name})`, (bench) =>
    bench.turn(messages.childFailed(openChild(bench, child), failureOf(error))),
  );

/** A worker takes the waiting session of this type, and makes its state. */
export const sessionActivated = (type: AnySession): Fact =>
  fact(`sessionActivated(${type.name})`, async (bench) => {
    const { sessionId, phase, attachments } = sessionOf(bench, type, "opening", "claimed");
    const on = messages.held("attachment" in phase ? phase.attachment : Math.max(1, attachments));
    await bench.turn(messages.claimed(sessionId, on), messages.activated(sessionId, on));
  });

/** The worker that holds the session of this type is gone, and its state with it. */
export const sessionLost = (type: AnySession): Fact =>
  fact(`sessionLost(${type.name})`, async (bench) => {
    const { sessionId, phase } = sessionOf(bench, type, "active", "rebuilding", "claimed");
    if ("on" in phase && phase.on) await bench.turn(messages.lost(sessionId, phase.on));
  });

/** The longest waiting call of this session type completes. */
export const callCompleted = <D extends AnySession, K extends keyof CallsOf<D> & string>(
  type: D,
  call: K,
  output: CallsOf<D>[K] extends Call<infer _S, infer _I, infer O> ? O : never,
): Fact =>
  fact(`callCompleted(${type.name}, ${call})`, (bench) => {
    const { phase } = sessionOf(bench, type, "active", "rebuilding");
    const { id, attempt } = openTask(bench, call);
    const on = "on" in phase ? phase.on : undefined;
    return bench.turn(
      messages.completed(id, output, {
        attempt,
        execution: bench.state.execution,
        ...(on ? { epoch: on.epoch, worker: on.workerId } : {}),
      }),
    );
  });

/** A client asks the instance to stop. */
export const cancelled = (reason?: string): Fact =>
  fact("cancelled", (bench) => bench.turn(messages.cancel(reason)));

function openTask(bench: Bench, name: string): { id: number; attempt: number } {
  const task = [...bench.state.tasks.values()].find((each) => each.name === name);
  if (task) return task;
  const others = [...bench.state.tasks.values()].map((each) => each.name);
  throw new Error(
    `nothing called ${name} is open; ${others.length > 0 ? `open are: ${others.join(", ")}` : "nothing is"}`,
  );
}

function openChild(bench: Bench, { name }: { readonly name: string }): number {
  const child = [...bench.state.children.values()].find((each) => each.name === name);
  if (child) return child.id;
  throw new Error(`no child ${name} is open`);
}

function sessionOf(
  bench: Bench,
  { name }: AnySession,
  ...phases: SessionState["phase"]["kind"][]
): SessionState {
  const all = [...bench.state.sessions.values()].filter(({ type }) => type === name);
  const found = all.find(({ phase }) => phases.includes(phase.kind));
  if (found) return found;
  const are = all.map(({ phase }) => phase.kind).join(", ");
  throw new Error(
    `no session of type ${name} is ${phases.join(" or ")}; ${are === "" ? "none is open" : `they are ${are}`}`,
  );
}
