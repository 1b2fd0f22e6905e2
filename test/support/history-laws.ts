/** What holds in every history, whatever the scenario (faults.md I2, I3, I4). */
import { expect } from "vitest";
import type { Commit, HistoryEvent } from "../../schemas/index.ts";

const terminal = new Set([
  "instance.completed",
  "instance.failed",
  "instance.cancelled",
  "instance.terminated",
  "instance.continued",
]);

export function checkHistory(commits: readonly Commit[]): void {
  const executions = new Map<number, HistoryEvent[]>();
  let latest = 0;
  for (const commit of commits) {
    expect(commit.at, "time never runs backwards within a history (F30)").toBeGreaterThanOrEqual(latest);
    latest = commit.at;
    const execution = Math.max(1, commit.execution);
    executions.set(execution, [...(executions.get(execution) ?? []), ...commit.events]);
  }
  for (const events of executions.values()) checkExecution(events);
  expect([...executions.keys()], "executions").toEqual([...executions.keys()].sort((a, b) => a - b));
}

function checkExecution(events: readonly HistoryEvent[]): void {
  const kinds = events.map((event) => event.kind);
  expect(
    events.map((event) => event.id),
    "gap-free ids",
  ).toEqual(events.map((_, index) => index + 1));
  const end = kinds.findIndex((kind) => terminal.has(kind));
  expect(kinds.slice(end < 0 ? kinds.length : end + 1), "after the terminal event").toEqual([]);
  checkAnswers(events);
  checkEpochs(events);
  checkLendings(events);
}

/** A member is lent to one at a time, and the numbers of a pool's lendings only grow. */
function checkLendings(events: readonly HistoryEvent[]): void {
  const begin = events.find((event) => event.kind === "instance.started");
  const lent = new Set(
    begin?.carried?.sessions.flatMap(({ sessionId, lending }) => (lending ? [sessionId] : [])),
  );
  let latest = 0;
  for (const event of events) {
    if (event.kind === "session.returned") {
      expect(lent.delete(event.sessionId), `${event.sessionId} was lent`).toBe(true);
    } else if (event.kind === "session.lent") {
      expect(lent.has(event.sessionId), `${event.sessionId} is free`).toBe(false);
      lent.add(event.sessionId);
      expect(event.lending.number, "lendings are numbered").toBeGreaterThan(latest);
      latest = event.lending.number;
    }
  }
}

const answers: Partial<Record<HistoryEvent["kind"], string>> = {
  "activity.completed": "activity.scheduled",
  "activity.failed": "activity.scheduled",
  "activity.cancelled": "activity.scheduled",
  "timer.fired": "timer.created",
  "timer.cancelled": "timer.created",
  "child.completed": "child.scheduled",
  "child.failed": "child.scheduled",
  "child.cancelled": "child.scheduled",
  "pool.lent": "pool.joined",
  "update.completed": "update.accepted",
  "update.failed": "update.accepted",
};

/** Every answer names an earlier question of its kind, and no question is answered twice. */
function checkAnswers(events: readonly HistoryEvent[]): void {
  const answered = new Set<number>();
  for (const event of events) {
    const question = answers[event.kind];
    if (!question || !("of" in event) || event.of === undefined) continue;
    expect(events[event.of - 1]?.kind, `${event.kind} of ${event.of}`).toBe(question);
    expect(event.of, "asked before").toBeLessThan(event.id);
    expect(answered.has(event.of), `second answer to ${event.of}`).toBe(false);
    answered.add(event.of);
  }
}

/** Work of a session is accepted from whoever holds it at that point, and from nobody else; epochs only grow. */
function checkEpochs(events: readonly HistoryEvent[]): void {
  const current = new Map<string, number | undefined>();
  const highest = new Map<string, number>();
  const begin = events.find((event) => event.kind === "instance.started");
  for (const session of [...(begin?.carried?.sessions ?? []), ...(begin?.granted ?? [])])
    if ("on" in session.phase) current.set(session.sessionId, session.phase.on?.epoch);
  const requested = new Set<string>();
  for (const event of events) {
    switch (event.kind) {
      case "session.requested": {
        const key = `${event.sessionId}.${event.attachment}`;
        expect(requested.has(key), `lease key ${key} is used once`).toBe(false);
        requested.add(key);
        break;
      }
      case "session.activated": {
        const { sessionId, on } = event;
        expect(on.epoch, "epochs grow").toBeGreaterThan(highest.get(sessionId) ?? 0);
        highest.set(sessionId, on.epoch);
        current.set(sessionId, on.epoch);
        break;
      }
      case "pool.lent": {
        const { sessionId, phase } = event.member;
        if ("on" in phase) current.set(sessionId, phase.on?.epoch);
        break;
      }
      case "session.lost":
      case "session.parked":
      case "session.failed":
      case "session.closed":
        current.set(event.sessionId, undefined);
        break;
      case "activity.completed": {
        const task = events[event.of - 1];
        if (task?.kind !== "activity.scheduled" || task.target.kind !== "session") break;
        const epoch = current.get(task.target.sessionId);
        expect(epoch, `somebody held the session when event ${event.id} happened`).toBeDefined();
        expect(event.epoch, `event ${event.id} is the holder's`).toBe(epoch);
        break;
      }
    }
  }
}
