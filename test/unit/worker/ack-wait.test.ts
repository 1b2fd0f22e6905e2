import { expect, test } from "vitest";
import { Name } from "../../../schemas/index.ts";
import { ackWaitFor } from "../../../services/worker/activities/pulling/ack-wait.ts";

const served = (name: string) => [{ queue: Name.parse("default"), name: Name.parse(name) }];
const wait = (ownMs: number, others: Parameters<typeof ackWaitFor>[2]) =>
  ackWaitFor({ queue: "default", name: "work" }, ownMs, others);

test("defect 11: the wait is as long as the longest that a living worker of the activity relies on", () => {
  expect(wait(1000, [])).toBe(1000);
  expect(wait(1000, [{ activities: served("work"), ackWaitMs: 30_000 }])).toBe(30_000);
  expect(wait(1000, [{ activities: served("other"), ackWaitMs: 30_000 }])).toBe(1000);
  expect(wait(30_000, [{ activities: served("work"), ackWaitMs: 1000 }])).toBe(30_000);
  expect(wait(1000, [{ activities: served("work") }]), "of an older version").toBe(10_000);
});
