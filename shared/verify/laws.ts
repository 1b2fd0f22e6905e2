/** The laws that the checker proves (docs/laws.md), and what operators do about a violation. */

interface LawText {
  readonly statement: string;
  /** What is true if the law is broken, and what to do. */
  readonly means: string;
}

const engineBug =
  "This is a bug of the engine, or a person wrote to the streams by hand: keep the history (`holdfast history <id> --export`) and report it.";

export const checkedLaws = {
  I1: {
    statement: "every acknowledged start has exactly one instance",
    means: "Work that was accepted is gone, or runs twice. Start it again if it is gone, and report it.",
  },
  I2: { statement: "one terminal event per execution", means: `The instance ended twice. ${engineBug}` },
  I3: {
    statement:
      "histories are whole: ids without a gap, time that never runs backwards, nothing after the end",
    means: `The history was damaged, or two owners wrote it. ${engineBug}`,
  },
  I4: {
    statement: "every completion answers an earlier event of its execution, under the epoch that was current",
    means: `The code got an answer to something else. ${engineBug}`,
  },
  I5: {
    statement: "replaying the history gives the same decisions",
    means:
      "The application's code disagrees with what it did: the instance parks when it is loaded. Deploy code that agrees (docs/deploying-changed-code.md).",
  },
  I6: {
    statement: "owner intervals of a session never overlap; epochs grow",
    means: `Two workers had the right to act for one session. ${engineBug}`,
  },
  I7: {
    statement: "no result is accepted from a worker that was not the owner",
    means: `A stale worker's result counts. ${engineBug}`,
  },
  I8: {
    statement: "each owner's death is recorded, within a bound",
    means:
      "An instance still believes that its session is held. Is a watcher alive, and an orchestrator for its partition? See `holdfast doctor`.",
  },
  I9: {
    statement: "nothing is stranded: everything an instance waits for is in a queue or with a process",
    means:
      "The instance waits for work that no process has. Send it a message, or end it with `holdfast terminate`; keep the history and report it.",
  },
  I10: {
    statement: "an accepted result counts once, and attempts stay within their policy",
    means: `A task was answered twice, or tried more often than it may be. ${engineBug}`,
  },
  I11: {
    statement: "timers fire once and not early",
    means: `Code went on before its time, or never. ${engineBug}`,
  },
  I12: {
    statement: "messages arrive exactly once, in order per sender",
    means: `A signal was lost, counted twice or overtook another. ${engineBug}`,
  },
  I13: {
    statement: "a session is closed once, and shut down at most once per attachment",
    means: `The session's clean-up ran twice, or it was used after its end. ${engineBug}`,
  },
  I14: {
    statement: "sessions per worker never exceed its cap",
    means: `The worker holds more than its settings allow: memory may run out. ${engineBug}`,
  },
  I15: {
    statement: "what has ended leaves nothing behind",
    means:
      "Keys, consumers, streams or messages of something that has ended take up room. Is a watcher alive? It removes them; report what stays.",
  },
  I16: {
    statement: "cancelled means terminal within a bound",
    means:
      "The instance was asked to end and has nothing left to wait for, but has not ended. `holdfast terminate` ends it.",
  },
  I17: {
    statement: "after healing everything finishes",
    means:
      "An instance that should have come to its end has not: it is stuck. Keep its history and report it.",
  },
  I18: {
    statement: "the run really hit the rare branches",
    means: "This run proves nothing about what it never reached. Run it longer, or with more faults.",
  },
  "CALL-1": {
    statement: "calls of a session run in the order they were asked for, each attempt once per attachment",
    means: `The session's state saw its calls in another order than the code asked for them. ${engineBug}`,
  },
  "LENDER-1": {
    statement: "a member of an exclusive pool is lent to one borrower at a time",
    means: `Two orchestrations used one member at once. ${engineBug}`,
  },
  "QUOTA-1": {
    statement: "no more sessions are held than a quota allows",
    means:
      "The installation holds more than it should. Were quotas lowered, or do workers disagree about them (`holdfast doctor`)? Otherwise report it.",
  },
  "VALUE-2": {
    statement: "every value a history refers to is in the object store, with its content",
    means:
      "Code that needs the value fails with `blob_missing` or `blob_damaged`. Was the object store purged? Restore it from a backup.",
  },
  E2: {
    statement: "read models agree with the histories",
    means:
      "Lists and results show something that did not happen. The next change of the instance corrects its entry; if it stays wrong, report it.",
  },
} as const satisfies Record<string, LawText>;

export type LawId = keyof typeof checkedLaws;
export const lawIds = Object.keys(checkedLaws) as LawId[];
