/** The whole life of instances on real processes: signals, children, generations, ends of every kind. */
import { describe, expect, it } from "vitest";
import { installation } from "../support/processes/installation.ts";
import { until } from "../support/processes/stack.ts";

const world = installation({ app: "lifecycle", watchers: 0 });
const { journal, start } = world;

const result = (id: string) => world.client.result(id, { timeout: "30s" });

describe("signals", () => {
  it("sent before the start are kept for it, in order, with those after it", async () => {
    const words = ["one", "two", "three", "four"];
    for (const word of words.slice(0, 2)) await world.client.signal("early", "word", word);
    await until("it waits for its start", async () => {
      const status = await world.client.status("early").catch(() => undefined);
      return status?.status === "pending";
    });
    await start("listener", { n: 4 }, "early");
    for (const word of words.slice(2)) await world.client.signal("early", "word", word);
    expect(await result("early")).toEqual(words);
    await world.streams.checkEnded(["early"]);
  });

  it("after the end get a clear answer at the client, and a dead letter from anybody else", async () => {
    await start("listener", { n: 0 }, "over");
    await result("over");
    await expect(world.client.signal("over", "word", 1)).rejects.toMatchObject({ code: "instance_ended" });
    await world.stack.bus.publish(world.stack.names.signal("over", "word"), new TextEncoder().encode("2"));
    const letter = await until("a dead letter", async () =>
      (await world.streams.deadLetters()).find(({ id }) => id === "over"),
    );
    expect(letter.reason).toMatchObject({ code: "instance_ended", message: expect.stringContaining("over") });
    await world.streams.checkEnded(["over"]);
  });

  it("I12: arrive once and in order per sender, also many at a time", async () => {
    const handle = await start("listener", { n: 200 }, "flood");
    const sender = async (name: string) => {
      for (let i = 0; i < 100; i++) await handle.signal("word", `${name}${i}`);
    };
    await Promise.all([sender("a"), sender("b")]);
    const heard = (await result("flood")) as string[];
    for (const name of ["a", "b"]) {
      const own = heard.filter((word) => word.startsWith(name));
      expect(own).toEqual(Array.from({ length: 100 }, (_, i) => `${name}${i}`));
    }
  });
});

describe("children", () => {
  it("attached and detached: results, errors, and a life of their own", async () => {
    await start("family", { id: "fam" }, "fam");
    expect(await result("fam")).toEqual({ a: "A", b: "B", failed: "child_says_no", spawned: "fam-spawned" });
    expect((await world.client.status("fam-named")).parent).toMatchObject({ instanceId: "fam" });
    expect((await world.client.status("fam-spawned")).status).toBe("running");
    await world.client.signal("fam-spawned", "go", "later");
    expect(await result("fam-spawned")).toBe("later");
    await world.streams.checkEnded(["fam", "fam-named", "fam-spawned"]);
  });

  it("whose id is taken: the parent is told, and the other instance is left alone", async () => {
    await start("listener", { n: 1 }, "somebody");
    await until("it runs", async () => (await world.client.status("somebody")).status === "running");
    await start("adopts", "somebody", "adopter");
    expect(await result("adopter")).toBe("instance_exists");
    await world.client.signal("somebody", "word", "mine still");
    expect(await result("somebody")).toEqual(["mine still"]);
    await world.streams.checkEnded(["adopter", "somebody"]);
  });

  it("attached ones are cancelled with their parent", async () => {
    await start("parent", "par-child", "par");
    await until("the child runs", async () => {
      const status = await world.client.status("par-child").catch(() => undefined);
      return status?.status === "running";
    });
    await world.client.cancel("par", "enough");
    await expect(result("par")).rejects.toMatchObject({ code: "cancelled" });
    await expect(result("par-child")).rejects.toMatchObject({ code: "cancelled" });
  });
});

it("continues as new fifty times, each execution with a history of its own", async () => {
  await start("generations", { left: 50, total: 0 }, "gen");
  expect(await result("gen")).toEqual({ total: 50, execution: 50 });
  await world.streams.checkEnded(["gen"]);
  const executions = new Set((await world.streams.history("gen")).map((commit) => commit.execution));
  expect(executions.size).toBe(50);
});

it("shows the last of many changes in one turn", async () => {
  await start("chatty", { n: 50 }, "chatty");
  await until("its status is shown", async () => {
    const view = await world.client.status("chatty").catch(() => undefined);
    return (view?.customStatus as { step: number } | undefined)?.step === 50;
  });
  await world.client.signal("chatty", "enough");
  expect(await result("chatty")).toBe(50);
  expect((await world.client.status("chatty")).customStatus).toEqual({ again: 50 });
  const log = world.stack.of("orchestrator")[0]?.log() ?? "";
  expect(log).not.toContain('"kind":"fault"');
});

describe("ends", () => {
  it("cancel lets the code clean up and stops what runs", async () => {
    await start("tidy", null, "tidy");
    await journal.until("long began tidy");
    await world.client.cancel("tidy", "enough");
    await expect(result("tidy")).rejects.toMatchObject({ code: "cancelled" });
    await journal.until("long ended tidy");
    expect(journal.lines("add tidy")).toHaveLength(1);
    expect(await world.client.status("tidy")).toMatchObject({ status: "cancelled" });
    await world.streams.checkEnded(["tidy"], "instance.cancelled");
    await expect(world.client.cancel("tidy")).rejects.toMatchObject({ code: "instance_ended" });
  });

  it("terminate asks nobody", async () => {
    await start("tidy", null, "ended");
    await journal.until("long began ended");
    await world.client.terminate("ended", "now");
    await expect(result("ended")).rejects.toMatchObject({ code: "terminated" });
    await journal.until("long ended ended");
    expect(journal.lines("add ended")).toHaveLength(0);
    await world.streams.checkEnded(["ended"], "instance.terminated");
  });

  it("leave nothing in the queues", async () => {
    await world.streams.untilQuiet();
  });
});
