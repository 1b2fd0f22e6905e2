/** Bare sessions, whose state is the application's own business, and the policy that gives it back. */
import { expect, it } from "vitest";
import { installation } from "../../support/processes/installation.ts";

const world = installation({ app: "held" });
const { journal, start, result } = world;

it("concurrent cold calls cause one rebuild, and then all succeed", async () => {
  await start("remembering", { ms: 0, cold: true }, "cold");
  const { answers } = await result<{ answers: string[] }>("cold", "30s");
  expect(answers).toEqual(Array.from({ length: 5 }, () => "the same again"));
  expect(journal.lines("learn cold"), "at first, and once as the rebuild").toHaveLength(2);
  const events = await world.streams.events("cold");
  const rebuilds = events.filter((event) => event.kind === "activity.scheduled" && event.by === "engine");
  expect(rebuilds).toHaveLength(1);
  expect(events.map((event) => event.kind)).not.toContain("session.lost");
});

it("a rebuild that misses the state itself is not rebuilt: it ends what waits for it", async () => {
  await start("hopeless-session", null, "hopeless");
  const { outcome, later } = await result<{ outcome: unknown; later: string }>("hopeless", "30s");
  expect(outcome).toMatchObject({
    code: "session_lost",
    text: expect.stringContaining("nothing to rebuild from"),
  });
  expect(later).toBe("session_unusable");
  expect(journal.lines("amnesia hopeless")).toHaveLength(1);
  expect(await world.streams.kinds("hopeless")).toContain("session.failed");
  await world.streams.untilQuiet();
});
