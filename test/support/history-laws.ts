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
  for (const commit of commits) {
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
};

/** Every answer names an earlier question of its kind, and no question is answered twice. */
function checkAnswers(events: readonly HistoryEvent[]): void {
  const answered = new Set<number>();
  for (const event of events) {
    const question = answers[event.kind];
    if (!question || !("of" in event)) continue;
    expect(events[event.of - 1]?.kind, `${event.kind} of ${event.of}`).toBe(question);
    expect(event.of, "asked before").toBeLessThan(event.id);
    expect(answered.has(event.of), `second answer to ${event.of}`).toBe(false);
    answered.add(event.of);
  }
}
