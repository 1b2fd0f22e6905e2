import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { call, defineOrchestration, defineSession } from "../../shared/definitions/index.ts";

const one = (): number => 1;
const ask = call();
const run = call({ run: () => 1 });
const process = { isolation: "process" } as const;
const python = ["python3", "model.py"] as const;

test("a type whose code is in a program is typed by its schemas", () => {
  const embedder = defineSession("embedder", {
    isolation: "process",
    command: ["python3", "model.py"],
    config: z.object({ model: z.string() }),
    calls: { embed: call({ input: z.string(), output: z.array(z.number()) }) },
    checkpoint: true,
  });
  defineOrchestration("embed", {
    async run(ctx, text: string) {
      await using session = await ctx.openSession(embedder, { config: { model: "m" } });
      const vector = await session.embed(text);
      expectTypeOf(vector).toEqualTypeOf<number[]>();
      // @ts-expect-error: a text is asked for
      await session.embed(7);
      return vector;
    },
  });
  expect(embedder.options.command).toEqual(["python3", "model.py"]);
});

/** Errors that TypeScript would find too, for users of JavaScript. */
const define = defineSession as (name: string, spec: object) => unknown;

test.each([
  [{ ...process, command: [], calls: { ask } }, /command must be a program and its arguments/],
  [
    { ...process, command: "python3 model.py", calls: { ask } },
    /command must be a program and its arguments/,
  ],
  [{ ...process, command: ["a\0b"], calls: { ask } }, /command must be a program and its arguments/],
  [{ ...process, command: [new URL("http://x/")], calls: { ask } }, /http:\/\/x\/, which is not a file/],
  [{ command: python, calls: { ask } }, /command needs isolation "process", and it is "inline"/],
  [
    { ...process, command: python, calls: { run } },
    /call "run" has run, but the program of command has its code/,
  ],
  [{ ...process, command: python, init: one, calls: { ask } }, /init belongs to the program of command/],
  [
    { ...process, command: python, checkpoint: one, calls: { ask } },
    /checkpoint belongs to the program of command/,
  ],
  [{ init: one, calls: { ask } }, /call "ask" has no run/],
  [{ calls: { run } }, /init is missing/],
  [{ init: one, cwd: "/", calls: { run } }, /cwd is the folder of command/],
  [{ init: one, env: { A: "1" }, calls: { run } }, /env needs isolation "thread" or "process"/],
  [{ ...process, init: one, env: { "A B": "1" }, calls: { run } }, /"A B", which is not a variable name/],
  [{ ...process, init: one, env: { A: 1 }, calls: { run } }, /env\.A must be a text/],
  [
    { ...process, init: one, threads: 2, threadSafe: true, calls: { run } },
    /threads needs isolation "thread"/,
  ],
  [{ isolation: "thread", init: one, threads: 2, calls: { run } }, /threads \(2\) needs threadSafe: true/],
  [{ isolation: "thread", init: one, threads: 0, calls: { run } }, /threads is 0: must be a whole number/],
  [
    { init: one, threadSafe: false, concurrency: 2, calls: { run } },
    /concurrency \(2\) and threadSafe: false/,
  ],
  [
    {
      ...{ isolation: "thread", threads: 2, threadSafe: true, init: one, calls: { run } },
      ...{ checkpoint: () => new Uint8Array(), restore: one },
    },
    /checkpoint with threads \(2\) needs share/,
  ],
])("options that contradict are refused by name: %#", (spec, reason) => {
  expect(() => define("x", spec)).toThrow(reason);
});

test("threads bring their concurrency", () => {
  const shared = defineSession("shared", {
    isolation: "thread",
    threads: 4,
    threadSafe: true,
    share: () => new SharedArrayBuffer(8),
    init: () => ({ weights: new Float32Array(2) }),
    calls: {
      first: call({ run: (state, index: number) => state.weights[index] }),
    },
  });
  expect(shared.options).toMatchObject({ threads: 4, concurrency: 4 });
});
