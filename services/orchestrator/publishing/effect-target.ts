/** The destinations of an instance's effects, shared by all files that publish them. */
import type { Attachment, SessionWork } from "../../../schemas/index.ts";
import type { StoredMessage } from "../../../shared/bus/index.ts";
import type { Effect, InstanceState } from "../../../shared/replay/index.ts";
import type { SparseMap } from "../../../shared/runtime/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { LaneWork } from "../lane/lane-work.ts";
import { type Outbox, publishEffect } from "./publish.ts";
import type { SessionRegister } from "./session-register.ts";
import type { Summaries } from "./summaries.ts";

export interface EffectTarget {
  readonly outbox: Outbox;
  readonly register: SessionRegister;
  readonly summaries: Summaries;
  /** Sequences of schedules that this owner published: to cancel by sequence is cheaper than by subject. */
  readonly schedules: SparseMap<number, number>;
}

/** The effects of one commit while they are published. */
export interface Publishing {
  readonly deps: EngineDeps;
  readonly state: Readonly<InstanceState>;
  readonly target: EffectTarget;
  readonly lane: LaneWork;
}

export type EffectOf<K extends Effect["kind"]> = Extract<Effect, { kind: K }>;

/** The execution that a message is from: part of its message id. */
export const executionOf = ({ state }: Publishing): string => `${state.instanceId}-${state.execution}`;

export const sendToHolder = (
  { deps, target }: Publishing,
  on: Attachment,
  sessionId: string,
  work: SessionWork,
  msgId: string,
): Promise<unknown> =>
  publishEffect(target.outbox, deps.names.sessionWork(on.workerId, sessionId), work, { msgId });

/**
 * Removes what was on the subject while this orchestrator owned the partition. An owner that was paused in
 * between removes nothing that was stored on the same subject since.
 */
export async function removeStored(
  { deps, lane }: Publishing,
  stream: string,
  subject: string,
  isOurs: (message: StoredMessage) => boolean = () => true,
): Promise<void> {
  const last = await deps.bus.last(stream, subject, { leader: true });
  if (last && lane.isHeld && isOurs(last)) await deps.bus.purge(stream, subject, last.seq);
}
