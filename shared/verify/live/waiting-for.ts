/** Lists what an instance waits for, with the keys to look for in the streams. */
import { nextDeadline } from "../../replay/index.ts";
import type { Folded } from "../fold.ts";

/** One thing that the instance waits for. It is not lost if any of the keys is in the streams. */
export interface Need {
  readonly what: string;
  readonly law: "I8" | "I9";
  readonly anyOf: readonly string[];
}

export const keys = {
  task: (instanceId: string, execution: number, of: number, attempt: number) =>
    `task ${instanceId} ${execution} ${of} ${attempt}`,
  timer: (instanceId: string, execution: number, of: number) => `timer ${instanceId} ${execution} ${of}`,
  /** An unacknowledged message in the instance's inbox. */
  mail: (instanceId: string) => `mail ${instanceId}`,
  /** The inbox message that represents work on the lane. */
  anchor: (instanceId: string, seq: number) => `anchor ${instanceId} ${seq}`,
  claim: (sessionId: string, attachment: number) => `claim ${sessionId} ${attachment}`,
  held: (sessionId: string, attachment: number) => `held ${sessionId} ${attachment}`,
  /** The lease's key was written, whatever happened to it later. */
  lease: (sessionId: string, attachment: number) => `lease ${sessionId} ${attachment}`,
  /** A history of that instance that has not ended. */
  running: (instanceId: string) => `running ${instanceId}`,
};

/** `overdueBefore`: times before this one are overdue. */
export function needsOf({ state, last }: Folded, overdueBefore: number): Need[] {
  const { instanceId, execution } = state;
  const mail = keys.mail(instanceId);
  const anchor = last?.anchor === undefined ? undefined : keys.anchor(instanceId, last.anchor);
  const onLane = (of: number) => (anchor !== undefined && last?.lane?.includes(of) ? [anchor] : []);
  const timer = (of: number) => keys.timer(instanceId, execution, of);
  const needs: Need[] = [];
  const add = (what: string, anyOf: string[], law: Need["law"] = "I9") =>
    needs.push({ what, law, anyOf: [mail, ...anyOf] });

  if (state.next) add("the beginning of its next execution", []);
  for (const of of state.timers.keys()) add(`timer ${of}`, [timer(of)]);
  for (const task of state.tasks.values()) {
    const { id, attempt, target, name } = task;
    const queued = keys.task(instanceId, execution, id, attempt);
    const what = `attempt ${attempt} of ${name}, event ${id}`;
    if (target.kind === "queue") add(what, [queued, ...onLane(id)]);
    else if (target.kind === "local") add(what, [timer(id), ...(anchor ? [anchor] : [])]);
    else {
      const session = state.sessions.get(target.sessionId);
      const phase = session?.phase;
      const holder = phase && "on" in phase && phase.kind !== "lost" ? phase.on : undefined;
      if (holder) add(what, [queued, ...onLane(id), keys.held(target.sessionId, holder.attachment)]);
      else if (session?.owner !== instanceId && session) add(what, [keys.running(session.owner)]);
      else if (phase?.kind !== "opening") add(`${what} on session ${target.sessionId} (${phase?.kind})`, []);
    }
  }
  for (const child of state.children.values())
    add(`child ${child.childId}, event ${child.id}`, [keys.mail(child.childId), keys.running(child.childId)]);
  for (const { sessionId, phase, owner } of state.sessions.values()) {
    if (owner !== instanceId) continue;
    if (phase.kind === "opening")
      add(`session ${sessionId}, attachment ${phase.attachment}`, [
        keys.claim(sessionId, phase.attachment),
        keys.lease(sessionId, phase.attachment),
      ]);
    // If the same holder won the next attachment, its instance gets the report soon (S14).
    if (phase.kind === "claimed" || phase.kind === "active" || phase.kind === "rebuilding")
      add(
        `the holder of session ${sessionId}, ${phase.on.workerId} with attachment ${phase.on.attachment}`,
        [keys.held(sessionId, phase.on.attachment), keys.held(sessionId, phase.on.attachment + 1)],
        "I8",
      );
  }
  const deadline = nextDeadline(state);
  if (deadline !== undefined && deadline < overdueBefore)
    add(`what was due ${Math.round((overdueBefore - deadline) / 1000)} s ago and more`, []);
  return needs;
}
