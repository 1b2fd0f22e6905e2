import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Streams } from "../support/nats/streams.ts";
import { Stack, until } from "../support/processes/stack.ts";

const deployment = (name: string) => fileURLToPath(new URL(`../apps/${name}.ts`, import.meta.url));

test("T6, F34: code that disagrees with its history parks its instances; a fixed deployment resumes them", async () => {
  const env = { HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000" };
  await using stack = await Stack.start({ app: deployment("deployed-first"), watchers: 0, env });
  const streams = new Streams(stack);
  const ids = ["o1", "o2", "o3"];
  for (const id of ids) await stack.client.start("order", "book", { id });
  await until("all wait for their approval", async () => {
    const kinds = await Promise.all(ids.map((id) => streams.kinds(id).catch((): string[] => [])));
    return kinds.every((own) => own.includes("activity.completed"));
  });
  await stack.of("orchestrator")[0]?.stop();

  const broken = await stack.run("orchestrator", { HOLDFAST_APP: deployment("deployed-broken") });
  for (const id of ids) await stack.client.signal(id, "approved", true);
  for (const id of ids) {
    const parked = await until(`${id} is parked`, async () => {
      const view = await stack.client.status(id);
      return view.status === "parked" && view;
    });
    expect(parked.error?.code).toBe("nondeterminism");
    // Both commands by name: what is recorded, and what was issued instead.
    expect(parked.error?.message).toMatch(/reserve/);
    expect(parked.error?.message).toMatch(/pay/);
  }
  const fresh = await stack.client.start("order", "pen", { id: "o4" });
  await stack.client.signal("o4", "approved", true);
  expect(await fresh.result({ timeout: "20s" })).toMatchObject({ paid: "paid pen" });
  await broken.stop();

  await stack.run("orchestrator");
  const results = ids.map((id) => stack.client.result(id, { timeout: "30s" }));
  const expected = { reserved: "reserved book", approved: true, paid: "paid book" };
  expect(await Promise.all(results)).toEqual(ids.map(() => expected));
  await streams.checkEnded(ids);
  await streams.untilQuiet();
});
