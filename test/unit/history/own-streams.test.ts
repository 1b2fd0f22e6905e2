import { expect, test } from "vitest";
import type { Bus } from "../../../shared/bus/index.ts";
import { subjects } from "../../../shared/bus/index.ts";
import { OwnStreams } from "../../../shared/history/own-streams.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";

/** Answers at a given moment, with the streams of that moment. */
class Server {
  readonly streams = new Set<string>();
  readonly asked: string[] = [];
  #answers: (() => void)[] = [];

  readonly bus = {
    streamNames: (filter: string) => this.#later(filter, () => [...this.streams]),
    streamInfo: (name: string) => this.#later(name, () => (this.streams.has(name) ? { name } : undefined)),
  } as unknown as Bus;

  #later<T>(question: string, answer: () => T): Promise<T> {
    this.asked.push(question);
    return new Promise((resolve) => {
      this.#answers.push(() => resolve(answer()));
    });
  }

  async answer(): Promise<void> {
    const answers = this.#answers;
    this.#answers = [];
    for (const say of answers) say();
    await new Promise(setImmediate);
  }
}

const rig = () => {
  const server = new Server();
  const clock = new SimulatedClock();
  const own = new OwnStreams({ bus: server.bus, names: subjects(), clock });
  return { server, clock, own };
};

test("one question for all who ask at the same time", async () => {
  const { server, own } = rig();
  server.streams.add("H_b");
  const answers = Promise.all(["a", "b", "c"].map((id) => own.has(id)));
  await server.answer(); // the question is sent behind the asking
  await server.answer();
  expect(await answers).toEqual([false, true, false]);
  expect(server.asked).toEqual(["history.*"]);
});

test("who asks while an answer is under way gets the next one: the first may be older than what happened since", async () => {
  const { server, own } = rig();
  const first = own.has("a");
  await server.answer();
  expect(server.asked).toHaveLength(1);
  const second = [own.has("b"), own.has("c")];
  await server.answer();
  expect(await first).toBe(false);
  server.streams.add("H_c");
  await server.answer();
  expect(await Promise.all(second)).toEqual([false, true]);
  expect(server.asked).toHaveLength(2);
});

test("where there are many, each is asked for by itself for a while", async () => {
  const { server, clock, own } = rig();
  for (let n = 0; n < 300; n++) server.streams.add(`H_s${n}`);
  const ask = async (id: string) => {
    const answer = own.has(id);
    await server.answer();
    await server.answer();
    return answer;
  };
  expect(await ask("s1")).toBe(true);
  expect(await ask("s2")).toBe(true);
  expect(await ask("other")).toBe(false);
  expect(server.asked).toEqual(["history.*", "H_s2", "H_other"]);
  await clock.advance(10_001);
  expect(await ask("s3")).toBe(true);
  expect(server.asked.at(-1)).toBe("history.*");
});

test("a failed question fails for those who asked it, and the next one is asked anew", async () => {
  const { server } = rig();
  const failing = new OwnStreams({
    bus: { ...server.bus, streamNames: failOnce(server.bus.streamNames) } as Bus,
    names: subjects(),
    clock: new SimulatedClock(),
  });
  await expect(failing.has("a")).rejects.toThrow("not now");
  const again = failing.has("a");
  await server.answer();
  await server.answer();
  expect(await again).toBe(false);
});

function failOnce<A extends unknown[], T>(act: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  let failed = false;
  return async (...args) => {
    if (failed) return act(...args);
    failed = true;
    throw new Error("not now");
  };
}
