/** The first events of the next execution after continue-as-new, with everything that is carried over (S11). */
import {
  currentRules,
  Name,
  type NewEvent,
  type SessionState,
  sessionPhases,
} from "../../../schemas/index.ts";
import { carriedIds, type InstanceState } from "../fold/state.ts";
import { rebuildTask } from "./rebuild.ts";

/** `before`: the state of the execution that ended with `instance.continued`. */
export function nextExecution(before: InstanceState): NewEvent[] {
  if (!before.next) throw new Error("continueAsNew without instance.continued");
  const { name, input, signals, state: entity } = before.next;
  const sessions = [...before.sessions.values()].filter(({ phase }) => !sessionPhases[phase.kind].over);
  const started: NewEvent = {
    kind: "instance.started",
    name: Name.parse(name),
    input,
    parent: before.parent,
    follower: before.follower,
    traceparent: before.traceparent,
    rules: currentRules,
    carried: {
      signals: signals.map((signal) => ({ ...signal, name: Name.parse(signal.name) })),
      sessions: sessions.map(withoutTask),
      ...spentBefore(before),
      ...updatesBefore(before),
      ...(entity && { state: entity }),
      ...receivedBefore(before),
      startedAt: before.startedAt,
    },
  };
  // A rebuild ended with the other tasks, but the session still needs it.
  const rebuilds = sessions.filter(({ phase }) => phase.kind === "rebuilding").map(rebuildTask);
  return [started, ...rebuilds];
}

/** Ids that the code chose may be opened again; ids that the engine made are never used twice. */
function spentBefore({ instanceId, sessions, spent }: InstanceState): { spent?: Record<string, number> } {
  const used = [...sessions.values()].filter(
    ({ owner, sessionId, attachments }) =>
      owner === instanceId && attachments > 0 && !sessionId.startsWith(`${instanceId}-`),
  );
  const all = [...Object.entries(spent), ...used.map((one) => [one.sessionId, one.attachments] as const)];
  return all.length === 0 ? {} : { spent: Object.fromEntries(all.slice(-carriedIds)) };
}

function updatesBefore({ updates }: InstanceState): { updates?: Name[] } {
  return updates.size === 0
    ? {}
    : { updates: [...updates.keys()].slice(-carriedIds).map((id) => Name.parse(id)) };
}

function receivedBefore({ messageIds }: InstanceState): { messageIds?: string[] } {
  const ids = [...messageIds].map(([id]) => id);
  return ids.length === 0 ? {} : { messageIds: ids.slice(-carriedIds) };
}

const withoutTask = (session: SessionState): SessionState =>
  session.phase.kind === "rebuilding"
    ? { ...session, phase: { kind: "active", on: session.phase.on } }
    : session;
