/** The laws that the checker proves (docs/laws.md), and what a violation means for operators. */

interface LawText {
  readonly says: string;
  /** What is true if the law is broken, and what to do. */
  readonly means: string;
}

const engineBug =
  "A bug of the engine, or somebody wrote to the streams by hand: keep the history (`holdfast history <id> --export`) and report it.";

export const checkedLaws = {
  I1: {
    says: "every acknowledged start has exactly one instance",
    means: "Work that was accepted is gone, or runs twice. Start it again if it is gone, and report it.",
  },
  I2: { says: "one terminal event per execution", means: `The instance ended twice. ${engineBug}` },
  I3: {
    says: "histories are whole: ids without a gap, time that never runs backwards, nothing after the end",
    means: `The history was damaged, or two owners wrote it. ${engineBug}`,
  },
  I4: {
    says: "every completion answers an earlier question of its execution, under the epoch that was current",
    means: `The code was given an answer to something else. ${engineBug}`,
  },
  I5: {
    says: "replaying the history gives the same decisions",
    means:
      "The application's code disagrees with what it did: the instance parks when it is loaded. Deploy code that agrees (docs/deploying-changed-code.md).",
  },
  I6: {
    says: "owner intervals of a session never overlap; epochs grow",
    means: `Two workers had the right to act for one session. ${engineBug}`,
  },
  I7: {
    says: "no result is accepted from a worker that was not the owner",
    means: `A stale worker's result counts. ${engineBug}`,
  },
  I8: {
    says: "each owner's death is recorded, within a bound",
    means:
      "An instance still believes that its session is held. Is a watcher alive, and an orchestrator for its partition? `holdfast doctor` says it.",
  },
  I9: {
    says: "nothing is stranded: all that an instance waits for is with somebody",
    means:
      "The instance waits for work that nobody has. `holdfast terminate` or a message to it moves it on; keep the history and report it.",
  },
  I10: {
    says: "an accepted result counts once, and attempts stay within their policy",
    means: `A task was answered twice, or tried more often than it may be. ${engineBug}`,
  },
  I11: {
    says: "timers fire once and not early",
    means: `Code went on before its time, or never. ${engineBug}`,
  },
  I12: {
    says: "messages arrive exactly once, in order per sender",
    means: `A signal was lost, counted twice or overtook another. ${engineBug}`,
  },
  I13: {
    says: "a session is closed once, and shut down at most once per attachment",
    means: `The session's clean-up ran twice, or it was used after its end. ${engineBug}`,
  },
  I14: {
    says: "sessions per worker never exceed its cap",
    means: `The worker holds more than it was told to: memory may run out. ${engineBug}`,
  },
  I15: {
    says: "nothing is left of what is over",
    means:
      "Keys, consumers, streams or messages of something that has ended take up room. Is a watcher alive? It tidies up; what stays is to be reported.",
  },
  I16: {
    says: "cancelled means terminal within a bound",
    means:
      "The instance was asked to end and has nothing left to wait for, but has not ended. `holdfast terminate` ends it.",
  },
  I17: {
    says: "after healing everything finishes",
    means:
      "An instance that should have come to its end has not: it is stuck. Keep its history and report it.",
  },
  I18: {
    says: "the run really hit the rare branches",
    means: "This run proves nothing about what it never reached. Run it longer, or with more faults.",
  },
  "CALL-1": {
    says: "calls of a session run in the order they were asked for, each attempt once per attachment",
    means: `The session's state saw its calls in another order than the code asked for them. ${engineBug}`,
  },
  "LENDER-1": {
    says: "a member of an exclusive pool is lent to one borrower at a time",
    means: `Two orchestrations used one member at once. ${engineBug}`,
  },
  "QUOTA-1": {
    says: "no more sessions are held than a quota allows",
    means:
      "The installation holds more than it should. Were quotas lowered, or do workers disagree about them (`holdfast doctor`)? Otherwise report it.",
  },
  "VALUE-2": {
    says: "every value a history refers to is in the object store, with its content",
    means:
      "Code that needs the value fails with `blob_missing` or `blob_damaged`. Was the object store purged? Restore it from a backup.",
  },
  E2: {
    says: "read models say what the histories say",
    means:
      "Lists and results show something else than what happened. The next change of the instance mends its entry; if it stays, report it.",
  },
} as const satisfies Record<string, LawText>;

export type LawId = keyof typeof checkedLaws;
export const lawIds = Object.keys(checkedLaws) as LawId[];
