/** Watches the user's code: counts the running pieces by worker, and puts fakes in place. */

import type { AnyActivity, AnyCall, AnySession, App } from "../../definitions/index.ts";

type ActivityCode = AnyActivity["run"];
type InitCode = AnySession["init"];
type CallCode = NonNullable<AnyCall["run"]>;

export class UserCode {
  readonly #running = new Map<symbol, string>();
  readonly #activityFakes = new Map<string, ActivityCode>();
  readonly #initFakes = new Map<string, InitCode>();
  readonly #callFakes = new Map<string, CallCode>();
  /** Pieces that wait for the kit's own clock. */
  #sleeping = 0;

  /** Number of running pieces that do not wait for virtual time. */
  get busy(): number {
    return Math.max(0, this.#running.size - this.#sleeping);
  }

  fakeActivity(name: string, code: ActivityCode): void {
    this.#activityFakes.set(name, code);
  }

  fakeInit(type: string, code: InitCode): void {
    this.#initFakes.set(type, code);
  }

  fakeCall(type: string, name: string, code: CallCode): void {
    this.#callFakes.set(callKey(type, name), code);
  }

  async asleep<T>(work: Promise<T>): Promise<T> {
    this.#sleeping++;
    try {
      return await work;
    } finally {
      this.#sleeping--;
    }
  }

  /** Work that a dead worker had running no longer counts. */
  forget(workerId: string): void {
    for (const [run, on] of this.#running) if (on === workerId) this.#running.delete(run);
  }

  /** The same application, watched, with fakes in place. */
  watched(app: App): App {
    return {
      ...app,
      activities: new Map([...app.activities].map(([name, each]) => [name, this.#activity(each)])),
      sessions: new Map([...app.sessions].map(([name, each]) => [name, this.#session(each)])),
    };
  }

  #activity(activity: AnyActivity): AnyActivity {
    const { name, run } = activity;
    return {
      ...activity,
      run: (ctx, input) => this.#run(ctx.workerId, () => (this.#activityFakes.get(name) ?? run)(ctx, input)),
    };
  }

  #session(session: AnySession): AnySession {
    const { name: type, init } = session;
    const calls: Record<string, AnyCall> = {};
    for (const [name, call] of Object.entries(session.calls)) calls[name] = this.#call(type, name, call);
    // Whatever host the session type names, here it runs in this process.
    const { isolation: _isolation, command: _command, threads: _threads, ...options } = session.options;
    return {
      ...session,
      options,
      init: (ctx, config) =>
        this.#run(ctx.session.workerId, () => (this.#initFakes.get(type) ?? init)(ctx, config)),
      calls,
    };
  }

  #call(type: string, name: string, call: AnyCall): AnyCall {
    const key = callKey(type, name);
    const { batch } = call;
    const run = call.run ?? (() => Promise.reject(needsFake(type, name)));
    const code: CallCode = (state, input, ctx) =>
      this.#run(ctx.workerId, () => {
        const fake = this.#callFakes.get(key);
        if (!fake) return run(state, input, ctx);
        if (!batch) return fake(state, input, ctx);
        // The real code receives the inputs of a batch together; a fake handles one at a time.
        const inputs: readonly never[] = input;
        return Promise.all(inputs.map((each) => fake(state, each, ctx)));
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

const callKey = (type: string, name: string): string => `${type}.${name}`;
