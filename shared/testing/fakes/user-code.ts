/** The user's code as the kit sees it: what of it runs, where, and what stands in for it. */

import type { AnyActivity } from "../../definitions/activity.ts";
import type { App } from "../../definitions/index.ts";
import type { AnyCall, AnySession } from "../../definitions/session.ts";

// biome-ignore lint/suspicious/noExplicitAny: fakes of every type in one place; they were checked where they were given
type Code = (...args: any[]) => unknown;

export class UserCode {
  readonly #running = new Map<symbol, string>();
  readonly #fakes = new Map<string, Code>();
  /** Pieces that wait for the kit's own clock. */
  #sleeping = 0;

  /** Pieces that run now and do not wait for virtual time. */
  get busy(): number {
    return Math.max(0, this.#running.size - this.#sleeping);
  }

  fake(key: string, code: Code): void {
    this.#fakes.set(key, code);
  }

  async asleep<T>(work: Promise<T>): Promise<T> {
    this.#sleeping++;
    try {
      return await work;
    } finally {
      this.#sleeping--;
    }
  }

  /** What a dead worker runs is nobody's any more. */
  forget(workerId: string): void {
    for (const [run, on] of this.#running) if (on === workerId) this.#running.delete(run);
  }

  /** The same application, watched, with fakes in the place of what they stand for. */
  watched(app: App): App {
    return {
      ...app,
      activities: new Map([...app.activities].map(([name, each]) => [name, this.#activity(each)])),
      sessions: new Map([...app.sessions].map(([name, each]) => [name, this.#session(each)])),
    };
  }

  #activity(activity: AnyActivity): AnyActivity {
    const key = keyOf.activity(activity.name);
    return {
      ...activity,
      run: (ctx, input) => this.#run(ctx.workerId, () => (this.#fakes.get(key) ?? activity.run)(ctx, input)),
    };
  }

  #session(session: AnySession): AnySession {
    const init = keyOf.init(session.name);
    const calls: Record<string, AnyCall> = {};
    for (const [name, call] of Object.entries(session.calls))
      calls[name] = this.#call(session.name, name, call);
    // Whatever it would run in, here it runs in this process.
    const { isolation: _isolation, command: _command, threads: _threads, ...options } = session.options;
    return {
      ...session,
      options,
      init: (ctx, config) =>
        this.#run(ctx.session.workerId, () => (this.#fakes.get(init) ?? session.init)(ctx, config)),
      calls,
    };
  }

  #call(type: string, name: string, call: AnyCall): AnyCall {
    const key = keyOf.call(type, name);
    const { batch } = call;
    const run = call.run ?? (() => Promise.reject(needsFake(type, name)));
    const code: NonNullable<AnyCall["run"]> = (state, input, ctx) =>
      this.#run(ctx.workerId, () => {
        const fake = this.#fakes.get(key);
        if (!fake) return run(state, input, ctx);
        const inputs: unknown = input;
        return batch && Array.isArray(inputs)
          ? Promise.all(inputs.map((each) => fake(state, each, ctx)))
          : fake(state, input, ctx);
      });
    return { ...call, run: code };
  }

  async #run(workerId: string, code: () => unknown): Promise<unknown> {
    const run = Symbol(workerId);
    this.#running.set(run, workerId);
    try {
      return await code();
    } finally {
      this.#running.delete(run);
    }
  }
}

const needsFake = (type: string, name: string): Error =>
  new Error(
    `call "${name}" of session "${type}" is in a program of its own, which a test does not start: give it a fake with env.fakeSession(${type}, { ${name}: ... })`,
  );

export const keyOf = {
  activity: (name: string): string => `activity ${name}`,
  init: (type: string): string => `init ${type}`,
  call: (type: string, name: string): string => `call ${type}.${name}`,
};
