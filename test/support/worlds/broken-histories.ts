/** Histories of one instance, written by hand: events, turns, and one history for each way to break a law. */
import { type Commit, Commit as CommitSchema } from "../../../schemas/index.ts";

export type Loose = Record<string, unknown> & { kind: string };

const json = (value: unknown) => ({ json: value });
export const start: Loose = { kind: "instance.started", name: "demo", input: json(1) };
export const done: Loose = { kind: "instance.completed", output: json(1) };
const retry = { maxAttempts: 2, initialDelayMs: 0, maxDelayMs: 0, factor: 1 };
export const task: Loose = {
  ...{ kind: "activity.scheduled", name: "work", input: json(1), timeouts: {}, retry },
  target: { kind: "queue", queue: "default" },
};
export const call: Loose = { ...task, target: { kind: "session", sessionId: "s", call: true } };
export const result = (of: number, more = {}): Loose => ({
  kind: "activity.completed",
  of,
  output: json(1),
  ...more,
});
export const timer = (fireAt: number): Loose => ({ kind: "timer.created", fireAt });
const options = {
  ...{
    creationTimeoutMs: 1,
    onLost: "fail",
    maxAutoRetries: 0,
    maxInitAttempts: 1,
    lazy: false,
    metadata: {},
  },
  requires: { tags: [], resources: {} },
};
export const open: Loose = { kind: "session.opened", sessionId: "s", type: "model", options };
export const request = (attachment: number): Loose => ({
  ...{ kind: "session.requested", sessionId: "s", attachment, deadlineAt: 9e12, restore: false },
});
const on = (attachment: number, epoch: number, workerId = "w") => ({
  ...{ attachment, epoch, workerId, nodeId: "n", host: "h", resourceId: "r" },
});
export const active = (attachment: number, epoch: number, workerId?: string): Loose => ({
  ...{ kind: "session.activated", sessionId: "s", on: on(attachment, epoch, workerId) },
  ...{ initMs: 1, warm: false, restored: false },
});
export const lost: Loose = { kind: "session.lost", sessionId: "s", on: on(1, 5), reason: "expired" };
export const closed: Loose = { kind: "session.closed", sessionId: "s" };
const lend = (number: number): Loose => ({
  ...{ kind: "session.lent", sessionId: "s" },
  lending: { poolId: "p", number, to: { instanceId: "b", execution: 1, of: 2 } },
});

export interface Turn {
  at?: number;
  execution?: number;
  inbox?: number[];
  events: Loose[];
}

/** Turns of one history; ids are given out as the engine does, unless an event has one. */
export function history(...turns: Turn[]): Commit[] {
  let execution = 1;
  let id = 0;
  return turns.map((turn, n) => {
    if (turn.execution !== undefined && turn.execution !== execution) id = 0;
    execution = turn.execution ?? execution;
    const events = turn.events.map((event) => {
      id = typeof event.id === "number" ? event.id : id + 1;
      return { id, ...event };
    });
    const commit = { v: 1, commitId: `c${n}`, instanceId: "demo-1", execution, at: turn.at ?? 1000 + n };
    return CommitSchema.parse({ ...commit, inbox: turn.inbox ?? [n + 1], events });
  });
}
export const broken: [law: string, what: string, turns: Turn[]][] = [
  ["I2", "it ends twice", [{ events: [start, done, done] }]],
  [
    "I2",
    "the next execution begins though this one has no end",
    [{ events: [start] }, { execution: 2, events: [start] }],
  ],
  ["I3", "a gap in its ids", [{ events: [start, { ...timer(1), id: 3 }] }]],
  [
    "I3",
    "time runs backwards (F30)",
    [
      { at: 2000, events: [start] },
      { at: 1999, events: [timer(1)] },
    ],
  ],
  ["I3", "something after the end", [{ events: [start, done] }, { events: [timer(1)] }]],
  ["I3", "started twice", [{ events: [start, start] }]],
  ["I4", "an answer to nothing", [{ events: [start, result(9)] }]],
  ["I4", "an answer to another kind of question", [{ events: [start, timer(1), result(2)] }]],
  [
    "I4",
    "a result under another epoch",
    [{ events: [start, open, request(1), active(1, 5), call, result(5, { epoch: 4 })] }],
  ],
  [
    "I6",
    "an epoch that does not grow",
    [{ events: [start, open, request(1), active(1, 5), lost, request(2), active(2, 5)] }],
  ],
  ["I6", "an attachment asked for twice", [{ events: [start, open, request(1), request(1)] }]],
  [
    "I7",
    "a result while nobody holds it",
    [{ events: [start, open, request(1), active(1, 5), call, lost, result(5, { epoch: 5 })] }],
  ],
  [
    "I7",
    "a result of another worker",
    [{ events: [start, open, request(1), active(1, 5), call, result(5, { epoch: 5, workerId: "v" })] }],
  ],
  ["I10", "a second result", [{ events: [start, task, result(2), result(2)] }]],
  [
    "I10",
    "more attempts than allowed",
    [
      {
        events: [
          start,
          task,
          ...[1, 2].map((attempt) => ({
            ...{ kind: "activity.attempt_failed", of: 2, attempt, retryAt: 1 },
            error: { code: "x", message: "", retryable: true },
          })),
        ],
      },
    ],
  ],
  [
    "I11",
    "a timer that fires early",
    [
      { at: 1000, events: [start, timer(5000)] },
      { at: 4999, events: [{ kind: "timer.fired", of: 2 }] },
    ],
  ],
  [
    "I11",
    "a timer that fires twice",
    [{ events: [start, timer(1), { kind: "timer.fired", of: 2 }, { kind: "timer.fired", of: 2 }] }],
  ],
  [
    "I12",
    "a message behind two commits",
    [
      { inbox: [7], events: [start] },
      { inbox: [7], events: [timer(1)] },
    ],
  ],
  [
    "I12",
    "one signal, received twice",
    [
      {
        events: [
          start,
          ...[1, 2].map((n) => ({ kind: "signal.received", name: "go", payload: json(n), messageId: "m" })),
        ],
      },
    ],
  ],
  ["I13", "a session closed twice", [{ events: [start, open, request(1), active(1, 5), closed, closed] }]],
  ["I13", "a session held after its close", [{ events: [start, open, request(1), closed, active(1, 5)] }]],
  [
    "LENDER-1",
    "lent to two at a time",
    [{ events: [start, open, request(1), active(1, 5), lend(1), lend(2)] }],
  ],
];
