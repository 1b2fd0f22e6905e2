import { laneRecordingKey, sessionRecordingKey } from "../../../schemas/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import { type Mail, wakeUp } from "../mail.ts";
import { type LaneSeats, LaneWork } from "./lane-work.ts";

/** The tasks of one instance on the lane; what becomes of them is `put` into the instance's mailbox. */
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
        elsewhere: () => undefined, // the worker waits only briefly for word that its report is recorded
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
