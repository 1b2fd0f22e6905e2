/** Session types whose code does everything wrong, in each place where code can run. */
import { fileURLToPath } from "node:url";
import {
  type AnySession,
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  type InitContext,
  type Isolation,
} from "holdfast";
import { textModel } from "holdfast/inference";

export const throwing = {
  text: () => {
    throw "a text";
  },
  nothing: () => {
    throw undefined;
  },
  cycles: () => {
    const error = Object.assign(new Error("round and round"), { details: {} as Record<string, unknown> });
    error.details.self = error;
    throw Object.assign(error, { cause: error });
  },
  unreadable: () => {
    throw new Proxy(new Error("x"), {
      get() {
        throw new Error("not for you");
      },
    });
  },
  rejecting: () => Promise.reject(null),
} satisfies Record<string, () => unknown>;

export const returning = {
  function: () => () => 1,
  symbol: () => Symbol("s"),
  bigint: () => 1n,
  cycle: () => {
    const value: Record<string, unknown> = {};
    value.self = value;
    return value;
  },
  nestedFunction: () => ({ list: [1, { act: () => 1 }] }),
  nestedSymbol: () => [{ name: Symbol("s") }],
  nestedBigint: () => ({ of: { count: 1n } }),
  throwingGetter: () => ({
    get value() {
      throw new Error("not for you");
    },
  }),
} satisfies Record<string, () => unknown>;

class Money {
  readonly #cents = 150;
  readonly currency = "EUR";
  toJSON(): string {
    return `${this.#cents / 100} ${this.currency}`;
  }
}

/** Odd, but JSON has words for it. */
export const odd = {
  classes: () => ({ price: new Money(), at: new Date(0), none: undefined, list: [undefined, Number.NaN] }),
  bytes: () => ({ bytes: Buffer.from("hi") }),
} satisfies Record<string, () => unknown>;

const acts: Record<string, () => unknown> = { ...throwing, ...returning, ...odd };

interface State {
  calls: number;
}
const calls = {
  act: call({
    run: (_state: State, how: string): unknown => acts[how]?.(),
  }),
  /** Counts what the state has seen: it is still the one `init` made. */
  fine: call({ run: (state: State, _input: unknown) => ++state.calls }),
  where: call({ run: (_state: State, _input: unknown) => process.pid }),
  /** Never returns, and does not listen. */
  hang: call({
    timeout: "700ms",
    run: (_state: State, _input: unknown) => new Promise<never>(() => undefined),
  }),
  /** Takes its thread or process along. */
  crash: call({ run: (_state: State, _input: unknown) => crash() }),
  /** Never lets go of its thread either. */
  spin: call({
    timeout: "700ms",
    run: (_state: State, _input: unknown): never => {
      for (;;);
    },
  }),
};

const crash = (): Promise<never> => {
  process.stderr.write("the model is on fire\n");
  setTimeout(() => process.exit(3), 20);
  return new Promise(() => undefined);
};

const init = (_ctx: InitContext): State => ({ calls: 0 });
const bad = (isolation: Isolation) =>
  defineSession(`bad-${isolation}`, {
    isolation,
    leaseTtl: "15s",
    host: { killGrace: "300ms" },
    init,
    calls,
  });

export const badInline = bad("inline");
export const badThread = bad("thread");
export const badProcess = bad("process");
const types = { inline: badInline, thread: badThread, process: badProcess };

const batching = (isolation: Isolation) =>
  defineSession(`batching-${isolation}`, {
    ...{ isolation, leaseTtl: "15s" as const, init },
    calls: {
      many: call({
        batch: { maxSize: 3, maxDelay: "2s" },
        run: (_state: State, hows: string[]): unknown[] => hows.map((how) => acts[how]?.() ?? hows.length),
      }),
    },
  });

interface Seen {
  name?: string;
  code?: string;
  message?: string;
  value?: unknown;
}
async function seen(promise: Promise<unknown>): Promise<Seen> {
  try {
    return { value: await promise };
  } catch (error) {
    const { name, code, message } = error as { name: string; code: string; message: string };
    return { name, code, message };
  }
}

/** What a call gets that takes its host along, and what the session is good for afterwards. */
export const misbehave = defineOrchestration("misbehave", {
  async run(ctx, { where, how }: { where: Isolation; how: "hang" | "spin" | "crash" }) {
    await using session = await ctx.openSession(types[where]);
    const pid = await session.where(null);
    const got = await seen(session[how](null));
    return { got, after: await seen(session.fine(null)), pid };
  },
});

/** One bad call after the other on one session: what each gets, and how many good ones it has answered since. */
export const misbehaveOften = defineOrchestration("misbehave-often", {
  async run(ctx, { where, hows }: { where: Isolation; hows: string[] }) {
    await using session = await ctx.openSession(types[where]);
    const answers: { got: Seen; after: Seen }[] = [];
    for (const how of hows)
      answers.push({ got: await seen(session.act(how)), after: await seen(session.fine(null)) });
    return answers;
  },
});

/** An activity that runs on a session, and one that does not. */
export const actOut = defineActivity("act-out", { run: (_ctx, how: string) => acts[how]?.() });
export const beside = defineOrchestration("beside", {
  async run(ctx, { where, hows }: { where: Isolation | "plain"; hows: string[] }) {
    const answers: Seen[] = [];
    if (where === "plain") {
      for (const how of hows) answers.push(await seen(ctx.run(actOut, how)));
      return answers;
    }
    await using session = await ctx.openSession(types[where]);
    for (const how of hows) answers.push(await seen(session.run(actOut, how)));
    return answers;
  },
});

/** One poisoned item of a batch. */
export const batched = {
  inline: batching("inline"),
  thread: batching("thread"),
  process: batching("process"),
};
export const together = defineOrchestration("together", {
  async run(ctx, where: Isolation) {
    await using session = await ctx.openSession(batched[where]);
    return await Promise.all(["odd", "nestedFunction", "classes"].map((how) => seen(session.many(how))));
  },
});

/** The same for code that is no session's: `greedy` orchestrations may be as bad as calls. */
export const throwOut = defineOrchestration("throw-out", {
  run: async (_ctx, how: string) => acts[how]?.(),
});

const bytes = {
  throws: (): Uint8Array => {
    throw new Error("no checkpoint today");
  },
  text: (): Uint8Array => "text" as never,
  // Over the 64 MB a checkpoint may have.
  large: () => new Uint8Array(65 * 1024 * 1024),
};
const checkpointed = (how: keyof typeof bytes) =>
  defineSession(`checkpoint-${how}`, {
    isolation: "process",
    leaseTtl: "15s",
    checkpointEvery: 1,
    init,
    calls,
    checkpoint: () => bytes[how](),
    restore: init,
  });
export const unsaved = {
  throws: checkpointed("throws"),
  text: checkpointed("text"),
  large: checkpointed("large"),
};

export const saveBadly = defineOrchestration("save-badly", {
  async run(ctx, how: keyof typeof bytes) {
    await using session = await ctx.openSession(unsaved[how], { onLost: "restore" });
    return [await session.fine(null), await session.fine(null), await session.fine(null)];
  },
});

export const badShutdown = defineSession("bad-shutdown", {
  isolation: "process",
  leaseTtl: "15s",
  init,
  calls,
  shutdown: () => throwing.text(),
});

export const badInit = defineSession("bad-init", {
  isolation: "process",
  leaseTtl: "15s",
  init: (_ctx: InitContext, how: string): State => {
    acts[how]?.();
    return { calls: 0 };
  },
  calls,
});

/** A model too big for the machine: the kernel kills the process that loads it. */
export const tooBig = defineSession("too-big", {
  isolation: "process",
  leaseTtl: "15s",
  init: (_ctx: InitContext): Promise<State> => {
    process.stderr.write("allocating 80 GB\n");
    setTimeout(() => process.kill(process.pid, "SIGKILL"), 20);
    return new Promise(() => undefined);
  },
  calls,
});
/** And one that says what it needs. */
export const tooMuch = defineSession("too-much", {
  requires: { resources: { vram: 80 } },
  creationTimeout: "2s",
  init,
  calls,
});

const model = (name: string, localModelPath: string) =>
  textModel({ name, model: "absent/model", localModelPath, session: { leaseTtl: "15s" } });
export const missingModel = model(
  "missing-model",
  fileURLToPath(new URL("../../examples/models", import.meta.url)),
);

export const openBadly = defineOrchestration("open-badly", {
  async run(
    ctx,
    { what, config }: { what: "init" | "shutdown" | "model" | "big" | "much"; config?: string },
  ) {
    const type: AnySession = {
      ...{ init: badInit, shutdown: badShutdown, model: missingModel, big: tooBig, much: tooMuch },
    }[what];
    return seen(
      (async () => {
        await using session = await ctx.openSession(type, { config, maxInitAttempts: 2 });
        return what === "shutdown" ? await session.fine?.(null) : session.id;
      })(),
    );
  },
});
