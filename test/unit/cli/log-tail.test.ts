import { expect, it } from "vitest";
import { shownLogLine } from "../../../services/cli/dev/log-tail.ts";

const line = (fields: object) => JSON.stringify({ service: "worker", id: "w", pid: 1, time: "t", ...fields });

it.each([
  ["", undefined],
  ["printed by a user", "worker-1: printed by a user"],
  ['{"json":"of a user"}', 'worker-1: {"json":"of a user"}'],
  [line({ level: "info", kind: "worker.ready" }), undefined],
  [line({ level: "debug", message: "x" }), undefined],
  [
    line({ level: "warn", kind: "session.lost", sessionId: "s1" }),
    "worker-1: warn: session.lost sessionId=s1",
  ],
  [
    line({ level: "error", kind: "fault", code: "c", message: "bad\nthing", err: { stack: "…" } }),
    "worker-1: error: fault: bad thing code=c",
  ],
])("%s is shown as %s", (given, shown) => {
  expect(shownLogLine("worker-1", given, new Map())).toBe(shown);
});

it("says once why an instance is parked, and again when it is parked anew", () => {
  const reasons = new Map<string, string>();
  const shown = (fields: object) => shownLogLine("orchestrator", line({ level: "warn", ...fields }), reasons);
  const parked = { kind: "instance.parked", instanceId: "o1", code: "nondeterminism", message: "a, not b" };
  expect(shown(parked)).toMatch(/^o1 is parked: a, not b \(nondeterminism\)\. To go on: /);
  expect(shown(parked)).toBeUndefined();
  expect(shown({ ...parked, message: "a, not c" })).toMatch(/a, not c/);
  expect(shown({ kind: "instance.resumed", instanceId: "o1" })).toBe("o1 was parked and goes on");
  expect(shown(parked)).toMatch(/a, not b/);
});
