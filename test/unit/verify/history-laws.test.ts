/** Each law of a single history: the checker is silent about a history that keeps it, and names the law where it is broken. */
import { expect, test } from "vitest";
import { historyViolations } from "../../../shared/verify/index.ts";
import {
  active,
  broken,
  call,
  closed,
  done,
  history,
  lost,
  open,
  request,
  result,
  start,
  type Turn,
  task,
  timer,
} from "../../support/worlds/broken-histories.ts";

const lawsIn = (...turns: Turn[]): string[] => [
  ...new Set(historyViolations(history(...turns)).map((line) => line.split(" ")[0] ?? "")),
];

test("a history that keeps every law", () => {
  const [first, second] = [
    [start, task, timer(1001), open, request(1)],
    [active(1, 5), result(2), { kind: "timer.fired", of: 3 }, call],
  ];
  expect(
    lawsIn(
      { events: first },
      { events: second },
      {
        events: [
          lost,
          { kind: "activity.failed", of: 9, error: { code: "session_lost", message: "", retryable: false } },
        ],
      },
      { events: [request(2), active(2, 9, "v"), call] },
      {
        events: [
          result(14, { epoch: 9, workerId: "v" }),
          closed,
          { ...done, kind: "instance.continued", name: "demo", input: { json: 2 } },
        ],
      },
      { execution: 2, inbox: [4, 5, 6], events: [start] },
      { inbox: [7], events: [done] },
    ),
  ).toEqual([]);
});

test.each(broken)("%s: %s", (law, _what, turns) => {
  expect(lawsIn(...turns)).toContain(law);
});

test("a session of a key is lent to several at a time, to each once (LENDER-1)", () => {
  const to = (of: number) => ({ instanceId: "b", execution: 1, of });
  const lend = (number: number, of: number, refused?: object) => ({
    ...{ kind: "session.lent", sessionId: "s", ...(refused && { refused }) },
    lending: { poolId: "s", number, to: to(of), shared: true },
  });
  const back = (of: number) => ({ kind: "session.returned", sessionId: "s", from: to(of) });
  const refused = { type: "model", error: { code: "full", message: "", retryable: false } };
  const held = [start, open, request(1), active(1, 5)];
  expect(
    lawsIn(
      { events: held },
      { events: [lend(1, 2), lend(2, 3)] },
      { events: [back(2), lend(3, 4, refused), back(3)] },
    ),
  ).toEqual([]);
  expect(lawsIn({ events: held }, { events: [lend(1, 2), lend(2, 2)] })).toContain("LENDER-1");
  expect(lawsIn({ events: held }, { events: [lend(1, 2), back(3)] })).toContain("LENDER-1");
});
