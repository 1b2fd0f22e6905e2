import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/faults.ts", import.meta.url));

test.each(["endless", "endless-locally"])(
  "T9: %s is stopped with its process; its instance is parked, the others go on",
  async (name) => {
    const env = { HOLDFAST_ORCHESTRATOR_TURN_LIMIT_MS: "500", HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000" };
    await using stack = await Stack.start({ app, watchers: 0, env });
    const [first] = stack.of("orchestrator");
    await stack.client.start(name, null, { id: "sick" });
    expect(await first?.exited).toBe("SIGKILL");
    await stack.run("orchestrator");
    const healthy = await stack.client.start("steps", { n: 3 });
    expect(await healthy.result({ timeout: "20s" })).toBe(3);
    const sick = await until("the sick one is parked", async () => {
      const status = await stack.client.status("sick");
      return status.status === "parked" && status;
    });
    expect(sick.error?.code).toBe("runaway_turn");
  },
);

test("a turn that takes longer than the lease, but not too long, loses no partition", async () => {
  const env = { HOLDFAST_ORCHESTRATOR_TURN_LIMIT_MS: "60000", HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "1000" };
  await using stack = await Stack.start({ app, workers: 0, watchers: 0, env });
  await stack.run("orchestrator");
  const handle = await stack.client.start("slow", 4000);
  expect(await handle.result({ timeout: "40s" })).toBe("back");
  for (const orchestrator of stack.of("orchestrator")) expect(orchestrator.log()).not.toContain('"expired"');
});
