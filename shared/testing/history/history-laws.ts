/** What holds in every history, whatever the scenario (faults.md I2, I3, I4). */
import assert from "node:assert/strict";
import type { Commit, HistoryEvent } from "../../../schemas/index.ts";

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
    assert(commit.at >= latest, "time never runs backwards within a history (F30)");
    latest = commit.at;
    const execution = Math.max(1, commit.execution);
    executions.set(execution, [...(executions.get(execution) ?? []), ...commit.events]);
  }
  for (const events of executions.values()) checkExecution(events);
  const order = [...executions.keys()];
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
    "executions come in order",
  );
}

function checkExecution(events: readonly HistoryEvent[]): void {
  const kinds = events.map((event) => event.kind);
  for (const [index, { id }] of events.entries()) assert.equal(id, index + 1, "ids have no gap");
  const end = kinds.findIndex((kind) => terminal.has(kind));
  assert.deepEqual(kinds.slice(end < 0 ? kinds.length : end + 1), [], "nothing comes after the end");
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
      assert(lent.delete(event.sessionId), `${event.sessionId} was lent`);
    } else if (event.kind === "session.lent") {
      assert(!lent.has(event.sessionId), `${event.sessionId} is free`);
      lent.add(event.sessionId);
      assert(event.lending.number > latest, "lendings are numbered");
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
    assert.equal(events[event.of - 1]?.kind, question, `${event.kind} of ${event.of}`);
    assert(event.of < event.id, `${event.of} was asked before it was answered`);
    assert(!answered.has(event.of), `second answer to ${event.of}`);
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
        assert(!requested.has(key), `lease key ${key} is used once`);
        requested.add(key);
        break;
      }
      case "session.activated": {
        const { sessionId, on } = event;
        assert(on.epoch > (highest.get(sessionId) ?? 0), `epochs of ${sessionId} grow`);
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
        assert(epoch !== undefined, `somebody held the session when event ${event.id} happened`);
        assert.equal(event.epoch, epoch, `event ${event.id} is the holder's`);
        break;
      }
    }
  }
}
