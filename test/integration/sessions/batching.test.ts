import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { call, defineSession } from "../../../shared/definitions/index.ts";
import { NonRetryableError } from "../../../shared/errors/index.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

let serial = 0;
const fresh = (): string => `b${++serial}`;

const model = defineSession("model", {
  init: () => ({ sizes: [] as number[], order: [] as string[] }),
  calls: {
    upper: call({
      input: z.string(),
      output: z.string(),
      batch: { maxSize: 4, maxDelay: "40ms" },
      run: async (state, texts) => {
        state.sizes.push(texts.length);
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (texts.includes("poison")) throw new NonRetryableError("poisoned", { code: "poison" });
        return texts.map((text) => (text === "odd" ? new NonRetryableError("odd one") : text.toUpperCase()));
      },
    }),
    short: call({
      batch: { maxSize: 4, maxDelay: 5 },
      run: (_state, texts: string[]) => texts.slice(1),
    }),
    sizes: call({ run: (state) => state.sizes.splice(0) }),
  },
});

describe("batching", () => {
  it("runs calls that came together as one, and answers each", async () => {
    await rig.worker({ model });
    const id = fresh();
    const on = await rig.open("model", id);
    const texts = Array.from({ length: 10 }, (_, i) => `t${i}`);
    const all = await Promise.all(texts.map((input) => rig.call(on, id, { name: "upper", input })));
    for (const [i, of] of all.entries()) expect(await rig.output(of)).toBe(`T${i}`);
    const sizes = (await rig.output(await rig.call(on, id, { name: "sizes" }))) as number[];
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(10);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4);
    expect(sizes.length).toBeLessThan(6);
    const ran = rig.happenings.flatMap((one) => (one.kind === "batch.ran" ? [one.size] : []));
    expect(ran).toEqual(sizes);
  });

  it("waits for company no longer than told", async () => {
    await rig.worker({ model });
    const id = fresh();
    const on = await rig.open("model", id);
    const startedAt = performance.now();
    expect(await rig.output(await rig.call(on, id, { name: "upper", input: "alone" }))).toBe("ALONE");
    expect(performance.now() - startedAt).toBeGreaterThan(35);
    expect(await rig.output(await rig.call(on, id, { name: "sizes" }))).toEqual([1]);
  });

  it("fails only the item that is wrong: poison, an Error, an input that does not fit", async () => {
    await rig.worker({ model });
    const id = fresh();
    const on = await rig.open("model", id);
    const send = (input: unknown) => rig.call(on, id, { name: "upper", input });
    const [a, poison, b, odd] = await Promise.all([send("a"), send("poison"), send("b"), send("odd")]);
    expect(await rig.output(a)).toBe("A");
    expect(await rig.output(b)).toBe("B");
    expect(await rig.result(poison)).toMatchObject({ kind: "failed", error: { code: "poison" } });
    expect(await rig.result(odd)).toMatchObject({ kind: "failed", error: { message: "odd one" } });
    const [c, wrong] = await Promise.all([send("c"), send(5)]);
    expect(await rig.output(c)).toBe("C");
    expect(await rig.result(wrong)).toMatchObject({ kind: "failed", error: { code: "invalid_input" } });
    expect(await rig.output(await send("still here"))).toBe("STILL HERE");
  });

  it("names a handler that returns too few results", async () => {
    await rig.worker({ model });
    const id = fresh();
    const on = await rig.open("model", id);
    const result = await rig.result(await rig.call(on, id, { name: "short", input: "x" }));
    expect(result).toMatchObject({ kind: "failed", error: { code: "invalid_batch_result" } });
  });

  it("keeps the order towards other calls, and does not wait when something else is behind", async () => {
    const trace: string[] = [];
    const mixed = defineSession("mixed", {
      init: () => ({}),
      calls: {
        many: call({
          batch: { maxSize: 8, maxDelay: "10s" },
          run: (_state, inputs: number[]) => {
            trace.push(`many ${inputs.join(",")}`);
            return inputs;
          },
        }),
        one: call({
          run: (_state, n: number) => {
            trace.push(`one ${n}`);
            return n;
          },
        }),
      },
    });
    await rig.worker({ mixed });
    const id = fresh();
    const on = await rig.open("mixed", id);
    await rig.call(on, id, { name: "many", input: 1 });
    await rig.call(on, id, { name: "many", input: 2 });
    const last = await rig.call(on, id, { name: "one", input: 3 });
    expect(await rig.output(last)).toBe(3);
    expect(trace).toEqual(["many 1,2", "one 3"]);
  });

  it("lets one member be cancelled without ending the others", async () => {
    let aborted = false;
    let goOn: () => void = () => undefined;
    const gate = defineSession("gate", {
      init: () => ({}),
      calls: {
        pass: call({
          batch: { maxSize: 2, maxDelay: "5s" },
          run: async (_state, inputs: number[], ctx) => {
            ctx.signal.addEventListener("abort", () => {
              aborted = true;
            });
            await new Promise<void>((resolve) => {
              goOn = resolve;
            });
            return inputs;
          },
        }),
      },
    });
    const { workerId } = await rig.worker({ gate });
    const id = fresh();
    const on = await rig.open("gate", id);
    const first = await rig.call(on, id, { name: "pass", input: 1 });
    const second = await rig.call(on, id, { name: "pass", input: 2 });
    await rig.happening("call.started", (one) => one.of === second);
    await rig.work(workerId, id, { kind: "cancel", epoch: on.epoch, execution: 1, of: first } as never);
    await rig.happening("call.ended", (one) => one.of === first && one.outcome === "cancelled");
    goOn();
    expect(await rig.output(second)).toBe(2);
    expect(aborted).toBe(false);
  });
});
