/**
 * I2, I3: each execution ends once; ids have no gap, time never runs backwards, and no event follows the end.
 */
import { type EventKind, endsInstance, type HistoryEvent } from "../../../schemas/index.ts";
import type { HistoryLaw } from "./law.ts";

const endsExecution = (event: HistoryEvent): boolean =>
  endsInstance(event) || event.kind === "instance.continued";

export const oneEnd: HistoryLaw = {
  begin(onViolation) {
    let execution = 0;
    let end: { kind: EventKind; id: number } | undefined;
    return {
      commit(commit, of) {
        if (of !== execution) {
          if (execution > 0 && end?.kind !== "instance.continued")
            onViolation(
              "I2",
              `execution ${of} begins, but execution ${execution} ${end ? `ended with ${end.kind}` : "has no end"}`,
            );
          end = undefined;
          execution = of;
        }
        for (const event of commit.events) {
          if (!endsExecution(event)) continue;
          const { kind, id } = event;
          if (end)
            onViolation("I2", `execution ${of}: ${kind} as event ${id} after ${end.kind} as event ${end.id}`);
          end ??= { kind, id };
        }
      },
    };
  },
};

export const wholeHistory: HistoryLaw = {
  begin(onViolation) {
    let execution = 0;
    let lastId = 0;
    let latest = Number.NEGATIVE_INFINITY;
    let ended: number | undefined;
    let started = false;
    return {
      commit(commit, of) {
        const { at, commitId } = commit;
        // F30: turn time follows the server and never runs backwards.
        if (at < latest)
          onViolation("I3", `commit ${commitId} is dated ${latest - at} ms before the one it follows`);
        latest = Math.max(latest, at);
        if (of !== execution) {
          if (of !== execution + 1) onViolation("I3", `execution ${of} follows execution ${execution}`);
          [execution, lastId, ended, started] = [of, 0, undefined, false];
        }
        for (const event of commit.events) {
          const { id, kind } = event;
          if (id !== lastId + 1)
            onViolation("I3", `execution ${of}: event ${id} (${kind}) follows event ${lastId}`);
          lastId = id;
          if (ended !== undefined)
            onViolation("I3", `execution ${of}: event ${id} (${kind}) comes after the end, event ${ended}`);
          if (endsExecution(event)) ended ??= id;
          if (kind === "instance.started") {
            if (started) onViolation("I3", `execution ${of} is started a second time by event ${id}`);
            started = true;
          } else if (!started && kind !== "signal.received") {
            onViolation("I3", `execution ${of}: event ${id} (${kind}) comes before the start`);
          }
        }
      },
    };
  },
};
