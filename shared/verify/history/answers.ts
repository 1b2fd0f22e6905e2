/**
 * I4, I10: every answer names an earlier question of its execution, no question is answered twice, attempts
 * are counted.
 */
import type { EventKind, EventOf, HistoryEvent } from "../../../schemas/index.ts";
import type { OnViolation } from "../report.ts";
import type { HistoryLaw } from "./law.ts";

/** Which event answers which. `final: false`: a fact about a task that leaves it open. */
const answers: Partial<Record<EventKind, { question: EventKind; final: boolean }>> = {
  "activity.started": { question: "activity.scheduled", final: false },
  "activity.attempt_failed": { question: "activity.scheduled", final: false },
  "activity.completed": { question: "activity.scheduled", final: true },
  "activity.failed": { question: "activity.scheduled", final: true },
  "activity.cancelled": { question: "activity.scheduled", final: true },
  "timer.fired": { question: "timer.created", final: true },
  "timer.cancelled": { question: "timer.created", final: true },
  "child.completed": { question: "child.scheduled", final: true },
  "child.failed": { question: "child.scheduled", final: true },
  "child.cancelled": { question: "child.scheduled", final: true },
  "pool.lent": { question: "pool.joined", final: true },
  "update.completed": { question: "update.accepted", final: true },
  "update.failed": { question: "update.accepted", final: true },
};

const questions = new Set(Object.values(answers).map(({ question }) => question));

const answerOf = (event: HistoryEvent): { of: number; question: EventKind; final: boolean } | undefined => {
  const answer = answers[event.kind];
  return answer && "of" in event && event.of !== undefined ? { of: event.of, ...answer } : undefined;
};

export const answersFit: HistoryLaw = {
  begin(onViolation) {
    let execution = 0;
    const asked = new Map<number, EventKind>();
    return {
      commit(commit, of) {
        if (of !== execution) asked.clear();
        execution = of;
        for (const event of commit.events) {
          const answer = answerOf(event);
          if (answer) {
            const found = asked.get(answer.of);
            if (found !== answer.question)
              onViolation(
                "I4",
                `execution ${of}: event ${event.id} (${event.kind}) answers event ${answer.of}, which is ${found ?? "no earlier question"}, not ${answer.question}`,
              );
          }
          if (questions.has(event.kind)) asked.set(event.id, event.kind);
        }
      },
    };
  },
};

interface Attempts {
  maxAttempts: number;
  onSession: boolean;
  /** Number of the current attempt. */
  attempt: number;
  interruptions: number;
  answeredBy: number | undefined;
}

export const resultsOnce: HistoryLaw = {
  begin(onViolation) {
    let execution = 0;
    const tasks = new Map<number, Attempts>();
    const answered = new Map<number, number>();
    return {
      commit(commit, of) {
        if (of !== execution) {
          tasks.clear();
          answered.clear();
        }
        execution = of;
        for (const event of commit.events) {
          const answer = answerOf(event);
          if (answer) {
            const before = answered.get(answer.of);
            if (before !== undefined)
              onViolation(
                "I10",
                `execution ${of}: event ${event.id} (${event.kind}) is about event ${answer.of}, which event ${before} had answered`,
              );
            if (answer.final) answered.set(answer.of, before ?? event.id);
          }
          if (event.kind === "activity.scheduled")
            tasks.set(event.id, {
              maxAttempts: event.retry.maxAttempts,
              onSession: event.target.kind === "session",
              attempt: 1,
              interruptions: 0,
              answeredBy: undefined,
            });
          if (event.kind === "activity.attempt_failed")
            attemptFailed(event, tasks.get(event.of), of, onViolation);
          if (answer?.final) tasks.delete(answer.of);
        }
      },
    };
  },
};

function attemptFailed(
  event: EventOf<"activity.attempt_failed">,
  task: Attempts | undefined,
  execution: number,
  onViolation: OnViolation,
): void {
  if (!task) return; // already reported: the event answers no open task
  const { attempt, error } = event;
  if (attempt !== task.attempt)
    onViolation(
      "I10",
      `execution ${execution}: event ${event.id} ends attempt ${attempt} of event ${event.of}, but attempt ${task.attempt} is being made`,
    );
  // Histories of the first generation show an interruption only by the error's code.
  const interruption =
    event.interruption ?? (task.onSession && error.code === "session_lost" ? "counted" : "none");
  if (interruption !== "none") task.interruptions++;
  else if (attempt - task.interruptions >= task.maxAttempts)
    onViolation(
      "I10",
      `execution ${execution}: event ${event.of} is tried again after attempt ${attempt}, but may be tried ${task.maxAttempts} times`,
    );
  task.attempt = attempt + 1;
}
