import { EventId, InstanceId, type LaneQuestion } from "../../../schemas/index.ts";

export type RecallWhy = "returned" | "missing" | "silent" | "dead";

/** A task in a worker's hands. */
export interface OutTask {
  readonly name: LaneQuestion["tasks"][number];
  readonly subject: string;
  readonly workerId: string;
  /** A call: it lives and dies with its session's lease, so nobody has to look after it. */
  readonly leased: boolean;
  recall(why: RecallWhy): void;
}

/** The tasks one instance has out, as the lane looks after them. */
export interface OutTasks {
  /** Those given out before this instant, monotonic. */
  since(before: number): Iterable<OutTask>;
}

/** How a task is named in a question. */
export const laneTaskName = ({
  instanceId,
  execution,
  of,
  attempt,
}: {
  instanceId: string;
  execution: number;
  of: number;
  attempt: number;
}): LaneQuestion["tasks"][number] => ({
  instanceId: InstanceId.parse(instanceId),
  execution,
  of: EventId.parse(of),
  attempt,
});
