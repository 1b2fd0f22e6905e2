import type { InstanceTimeline } from "../../../../../shared/timeline/index.ts";

/** The part of a history that belongs to one session. Pure. */
export function lifeOf(model: InstanceTimeline, sessionId: string): InstanceTimeline {
  const sessions = model.sessions.filter((life) => life.sessionId === sessionId);
  const from = sessions[0]?.from ?? model.from;
  const last = sessions.at(-1)?.to ?? model.last;
  return {
    ...model,
    from,
    last: Math.max(from, last),
    sessions,
    work: model.work.filter((work) => work.sessionId === sessionId),
    received: [],
  };
}
