/** What an instance waits for, and why it is still waiting. Pure. */

import type { InstanceTimeline, SessionLife, Work } from "../../../../../shared/timeline/index.ts";
import { failureText, shortEpoch } from "../../../../../shared/wording/index.ts";
import type { SessionRow, WorkerRow } from "../../../live/rows.ts";
import type { Trouble } from "../../../live/troubles.ts";
import { ago, duration } from "../format.ts";

export interface Pending {
  id: number;
  what: string;
  why: string;
  since: number;
  link?: string;
  troubled: boolean;
  /** What people can do about it. */
  remedy?: string;
}

interface PendingInput {
  model: InstanceTimeline;
  /** Undefined until loaded: nothing is claimed about data that was not read. */
  sessions: readonly SessionRow[] | undefined;
  workers: readonly WorkerRow[] | undefined;
  /** The problems that the overview shows. */
  troubles?: readonly Trouble[] | undefined;
  now: number;
}

export function pendingWork(input: PendingInput): Pending[] {
  const { model } = input;
  if (model.ended) return [];
  return [
    ...model.sessions.flatMap((life) => waitingSession(life, input)),
    ...model.work.filter((work) => work.state === "open").map((work) => openWork(work, input)),
  ];
}

function openWork(work: Work, input: PendingInput): Pending {
  switch (work.kind) {
    case "activity":
      return {
        ...base(work, `activity ${work.name}`),
        ...(work.sessionId === undefined ? activityReason(work, input) : callReason(work, input)),
      };
    case "call":
      return { ...base(work, `call ${work.name}`), ...callReason(work, input) };
    case "child":
      return {
        ...base(work, `child ${work.name}`),
        why: "runs",
        troubled: false,
        link: `/orchestrations/${work.childId}`,
      };
    case "timer": {
      const fireAt = work.fireAt ?? 0;
      const late = input.now - fireAt > 5_000;
      return {
        ...base(work, "timer"),
        why: late ? `should have fired ${ago(fireAt, input.now)}` : `fires ${ago(fireAt, input.now)}`,
        troubled: late,
      };
    }
  }
}

const base = (work: Work, what: string): Pick<Pending, "id" | "what" | "since"> => ({
  id: work.id,
  what,
  since: work.from,
});

type Reason = Pick<Pending, "why" | "troubled" | "link" | "remedy">;
const looking: Reason = { why: "…", troubled: false };

function activityReason(work: Work, { workers, now }: PendingInput): Reason {
  const last = work.attempts.at(-1);
  if (last && last.retryAt > now) {
    return {
      why: `attempt ${last.attempt} failed: ${failureText(last.error)}; next ${ago(last.retryAt, now)}`,
      troubled: true,
    };
  }
  if (work.local) return { why: "runs in the orchestrator's process", troubled: false };
  if (!workers) return looking;
  const serving = workers.filter((worker) =>
    worker.activities.some((activity) => activity.queue === work.queue && activity.name === work.name),
  );
  if (serving.length === 0) {
    return {
      why: `no worker runs ${work.name} on queue ${work.queue}`,
      troubled: true,
      link: "/workers",
      remedy:
        "Start a worker whose application has this activity on this queue: `holdfast worker --app <module>`",
    };
  }
  if (work.startedAt !== undefined) {
    const alive = workers.some((worker) => worker.workerId === work.workerId);
    const why = alive
      ? `runs on ${work.workerId}`
      : `began on ${work.workerId}, which is gone; another worker runs it again`;
    return { why, troubled: false };
  }
  const full = serving.every((worker) => worker.slots.activities.used >= worker.slots.activities.max);
  if (full) {
    const all = serving.length === 1 ? "the only worker" : `all ${serving.length} workers`;
    const busy = serving.length === 1 ? "is busy" : "are busy";
    return { why: `${all} of queue ${work.queue} ${busy}`, troubled: true };
  }
  const tries = work.attempts.length > 0 ? `attempt ${work.attempts.length + 1}, ` : "";
  return { why: `${tries}handed to queue ${work.queue} (${serving.length} serving)`, troubled: false };
}

function callReason(work: Work, { sessions, now }: PendingInput): Reason {
  if (!sessions) return looking;
  const session = sessions.find((row) => row.sessionId === work.sessionId);
  const link = `/sessions/${work.sessionId}`;
  if (!session) return { why: `session ${work.sessionId} is not known here`, troubled: true, link };
  switch (session.phase) {
    case "active": {
      const silent = session.lease && now - session.lease.renewedAt > session.lease.ttlMs;
      if (silent) return { why: `${session.workerId} does not renew its lease`, troubled: true, link };
      return {
        why: `on ${session.workerId} (epoch ${session.epoch === undefined ? "–" : shortEpoch(session.epoch)})`,
        troubled: false,
        link,
      };
    }
    case "opening":
      return { why: `session ${session.sessionId} waits for a worker`, troubled: true, link };
    case "claimed":
      return { why: `${session.workerId} runs init`, troubled: false, link };
    case "rebuilding":
      return { why: `${session.workerId} rebuilds the session's state`, troubled: false, link };
    case "parked":
      return { why: "the session was idle; it is being claimed", troubled: false, link };
    case "lost":
    case "failed":
    case "closed":
      return { why: `the session is ${session.phase}`, troubled: true, link };
  }
}

/**
 * Why no worker has claimed the session yet, in the words of placement (S12), and the remedy, as the overview
 * shows them.
 */
function whyUnclaimed(
  { type }: SessionLife,
  { troubles }: PendingInput,
): Pick<Pending, "why" | "remedy"> | undefined {
  const link = `/sessions?type=${encodeURIComponent(type)}&phase=opening`;
  const trouble = troubles?.find((one) => one.code === "session_unserved" && one.link === link);
  if (!trouble) return undefined;
  const why = trouble.message.slice(trouble.message.indexOf(": ") + 2);
  return trouble.hint === undefined ? { why } : { why, remedy: trouble.hint };
}

function waitingSession(life: SessionLife, input: PendingInput): Pending[] {
  const { now } = input;
  const last = life.segments.at(-1);
  if (life.to !== undefined || last?.to !== undefined || !last) return [];
  if (last.phase !== "waiting" && last.phase !== "starting") return [];
  const waited = now - last.from;
  const unclaimed = last.phase === "waiting" ? whyUnclaimed(life, input) : undefined;
  return [
    {
      id: -1,
      what: `session ${life.sessionId}`,
      why:
        last.phase === "waiting"
          ? `waits for a worker that serves ${life.type}${unclaimed ? `: ${unclaimed.why}` : ""}`
          : `init runs on ${last.workerId} for ${duration(waited)}`,
      since: last.from,
      link: `/sessions/${life.sessionId}`,
      troubled: last.phase === "waiting" && waited > 3_000,
      ...(unclaimed?.remedy === undefined || waited <= 3_000 ? {} : { remedy: unclaimed.remedy }),
    },
  ];
}
