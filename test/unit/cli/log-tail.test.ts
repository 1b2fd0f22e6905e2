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
  expect(shownLogLine("worker-1", given)).toBe(shown);
});
