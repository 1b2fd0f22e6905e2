/** I11, I12: timers fire once and not early; messages count once, in the order of the inbox. */
import type { HistoryLaw } from "./law.ts";

export const timersInTime: HistoryLaw = {
  begin(onViolation) {
    let execution = 0;
    const timers = new Map<number, { fireAt: number; over: number | undefined }>();
    return {
      commit(commit, of) {
        if (of !== execution) timers.clear();
        execution = of;
        for (const event of commit.events) {
          if (event.kind === "timer.created") timers.set(event.id, { fireAt: event.fireAt, over: undefined });
          if (event.kind !== "timer.fired" && event.kind !== "timer.cancelled") continue;
          const timer = timers.get(event.of);
          if (!timer) continue; // reported by I4
          if (event.kind === "timer.fired") {
            if (timer.over !== undefined)
              onViolation(
                "I11",
                `execution ${of}: timer ${event.of} fires as event ${event.id}, but was over with event ${timer.over}`,
              );
            if (commit.at < timer.fireAt)
              onViolation(
                "I11",
                `execution ${of}: timer ${event.of} fires ${timer.fireAt - commit.at} ms before its time`,
              );
          }
          timer.over ??= event.id;
        }
      },
    };
  },
};

/** How many signal ids are remembered; the same number as in the engine. */
const rememberedIds = 1000;

export const messagesOnce: HistoryLaw = {
  begin(onViolation) {
    let execution = 0;
    /** Inbox sequences of this execution, and of the one before. */
    let applied = new Map<number, string>();
    let before = new Map<number, string>();
    const signals = new Set<string>();
    return {
      commit(commit, of) {
        const begins = of !== execution;
        if (begins) [before, applied] = [applied, new Map()];
        execution = of;
        for (const seq of commit.inbox) {
          // The first commit of an execution also names the latest messages of the one before.
          if (begins && before.has(seq)) continue;
          const first = applied.get(seq) ?? (begins ? undefined : before.get(seq));
          if (first !== undefined && first !== commit.commitId)
            onViolation(
              "I12",
              `inbox message ${seq} is behind commit ${commit.commitId} and was behind ${first} already`,
            );
          applied.set(seq, commit.commitId);
        }
        for (const event of commit.events) {
          if (event.kind !== "signal.received" || event.messageId === undefined) continue;
          if (signals.has(event.messageId))
            onViolation(
              "I12",
              `signal ${event.name} with message id ${event.messageId} is received again by event ${event.id}`,
            );
          signals.add(event.messageId);
          if (signals.size > rememberedIds) forgetOldest(signals);
        }
      },
    };
  },
};

function forgetOldest(ids: Set<string>): void {
  const [oldest] = ids;
  if (oldest !== undefined) ids.delete(oldest);
}
