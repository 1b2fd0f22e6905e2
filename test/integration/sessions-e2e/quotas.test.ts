/** A quota over the whole installation, as orchestrations and people meet it. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LeaseLog } from "../../../shared/verify/index.ts";
import { Streams } from "../../support/nats/streams.ts";
import { Stack, until } from "../../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../apps/quota.ts", import.meta.url));
const reached = "type scarce is at 2 of 2 in the whole installation (maxTotal)";

let stack: Stack;
let leases: LeaseLog;
beforeAll(async () => {
  stack = await Stack.start({ app, workers: 3 });
  leases = await LeaseLog.start(stack);
});
afterAll(async () => {
  await leases?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
});

const active = (instanceId: string) =>
  until(`a session of ${instanceId}`, async () => {
    const [session] = await stack.client.sessions.list({ instanceId });
    return session?.phase === "active" ? session : undefined;
  });

test("who waits is told why, goes on when another ends, and there are never more than two", async () => {
  const keepers = ["keeps-1", "keeps-2"];
  for (const id of keepers) {
    await stack.client.start("keeps", null, { id });
    await active(id);
  }
  const late = await stack.client.start("uses", { creationTimeout: "1s" }, { id: "late" });
  const failure = await late.result({ timeout: "20s" }).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ message: expect.stringContaining(reached) });

  const patient = Array.from({ length: 6 }, (_, i) => `patient-${i}`);
  for (const id of patient) await stack.client.start("uses", {}, { id });
  const sentences = await until("an explanation", async () => {
    const [session] = await stack.client.sessions.list({ instanceId: "patient-0" });
    if (session?.phase !== "opening") return undefined;
    const { explanation } = await stack.client.sessions.describe(session.sessionId);
    return explanation.includes(reached) ? explanation : undefined;
  });
  expect(sentences[0]).toContain("has waited for a worker");

  // One goes as it should, the other's worker is killed: either way its seat is free for the waiting sessions.
  await stack.client.signal("keeps-1", "end");
  expect(await stack.client.result("keeps-1", { timeout: "20s" })).toBe(2);
  const { workerId } = await active("keeps-2");
  const victim = stack.of("worker").find((worker) => worker.log().includes(`"workerId":"${workerId}"`));
  victim?.kill("SIGKILL");
  expect(await victim?.exited).toBe("SIGKILL");
  for (const id of patient) expect(await stack.client.result(id, { timeout: "30s" })).toBe(1);
  expect(leases.mostAtOnce()).toBe(2);
  expect(leases.violations()).toEqual([]);
  await stack.client.signal("keeps-2", "end");
  await expect(stack.client.result("keeps-2", { timeout: "20s" })).rejects.toMatchObject({
    code: "session_lost",
  });
  await new Streams(stack).checkEnded(["keeps-1", ...patient]);
});
