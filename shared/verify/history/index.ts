/** All laws that a single history must keep. */
import type { Commit } from "../../../schemas/index.ts";
import type { OnViolation } from "../report.ts";
import { answersFit, resultsOnce } from "./answers.ts";
import { oneEnd, wholeHistory } from "./gap-free-history.ts";
import { executionOf, type HistoryLaw, type HistoryWatch } from "./law.ts";
import { closedOnce, epochsGrow, lentToOne, ownersOnly } from "./sessions.ts";
import { messagesOnce, timersInTime } from "./timers-and-messages.ts";

const historyLaws: readonly HistoryLaw[] = [
  oneEnd,
  wholeHistory,
  answersFit,
  resultsOnce,
  epochsGrow,
  ownersOnly,
  closedOnce,
  lentToOne,
  timersInTime,
  messagesOnce,
];

export function watchHistory(onViolation: OnViolation): HistoryWatch {
  const watches = historyLaws.map((law) => law.begin(onViolation));
  return {
    commit: (commit) => {
      for (const watch of watches) watch.commit(commit, executionOf(commit));
    },
    end: () => {
      for (const watch of watches) watch.end?.();
    },
  };
}

/** Every violation in a whole history, each as one line. */
export function historyViolations(commits: readonly Commit[]): string[] {
  const found: string[] = [];
  const watch = watchHistory((law, evidence) => void found.push(`${law} ${evidence}`));
  for (const commit of commits) watch.commit(commit, executionOf(commit));
  watch.end?.();
  return found;
}
export { executionOf } from "./law.ts";
