import { laneRecordingKey, sessionRecordingKey } from "../../../schemas/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import { type Mail, wakeUp } from "../mail.ts";
import { type LaneSeats, LaneWork } from "./lane-work.ts";

/** The tasks of one instance on the lane; their results and recalls are `put` into the instance's mailbox. */
export const laneOfInstance = (
  { names, runtime, lane, generation }: OrchestratorDeps,
  instanceId: string,
  seats: LaneSeats,
  put: (mail: Mail) => void,
): LaneWork =>
  new LaneWork({
    ...{ instanceId, names, runtime, lane, generation, seats },
    onReport: ({ workerId, report }) =>
      put({
        message: { kind: "activity", report },
        delivery: undefined,
        done: () => lane.recorded(workerId, laneRecordingKey(instanceId, report)),
        elsewhere: () => undefined, // the worker sends the report by the inbox if it is not confirmed soon
      }),
    onActivated: ({ workerId, report }) =>
      put({
        message: { kind: "session", report },
        delivery: undefined,
        done: () => lane.recorded(workerId, sessionRecordingKey(report)),
        elsewhere: () => undefined,
      }),
    onRecalled: (of) => put({ ...wakeUp, recalled: of }),
  });
