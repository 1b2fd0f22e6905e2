import { EventId, InstanceId, type LaneQuestion } from "../../../schemas/index.ts";

export type RecallWhy = "returned" | "missing" | "silent" | "dead";

/** A task that a worker has taken. */
export interface OutTask {
  readonly name: LaneQuestion["tasks"][number];
  readonly subject: string;
  readonly workerId: string;
  /** True for a session call: it ends with its session's lease, so no orchestrator has to look after it. */
  readonly leased: boolean;
  recall(why: RecallWhy): void;
}

/** The tasks one instance has out, as the lane checks them. */
export interface OutTasks {
  /** Tasks sent before this monotonic time. */
  since(before: number): Iterable<OutTask>;
}

/** The name of a task in a question to workers. */
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
