/** What must leave the process after a commit (T2), as data. Each is safe to publish twice. */
import type {
  Attachment,
  Failure,
  Follower,
  Lending,
  Parent,
  Payload,
  PoolSpec,
  SessionState,
} from "../../../schemas/index.ts";
import type { OpenTask, UpdateRecord } from "./state.ts";

export type Effect =
  /** Hand the current attempt to a queue, at once or at `readyAt`. */
  | { kind: "task"; task: OpenTask }
  /** Hand the current attempt to the holder of its session. */
  | { kind: "call"; task: OpenTask; on: Attachment }
  /** Run the current attempt in this process; somebody must look after it if this process dies. */
  | { kind: "local"; task: OpenTask }
  /** A local activity is over: nobody need look after it. */
  | { kind: "forget-local"; of: number }
  | { kind: "cancel-task"; task: OpenTask; on: Attachment | undefined }
  /** Wake the instance; a later one of the same `of` replaces it. */
  | { kind: "schedule"; of: number; at: number }
  | { kind: "unschedule"; of: number }
  | { kind: "register-session"; sessionId: string }
  | { kind: "claim"; session: SessionState; attachment: number; deadlineAt: number; restore: boolean }
  | { kind: "withdraw-claim"; session: SessionState; attachment: number }
  | { kind: "close-session"; session: SessionState; on: Attachment; reason: string | undefined }
  /** Tell instances that may use this session what became of it, and under which epoch. */
  | { kind: "tell-grantees"; session: SessionState; epoch: number | undefined; to: string[] }
  /** A borrower learns which member is his. */
  | { kind: "lend"; session: SessionState & { lending: Lending } }
  /** Ask the owner of a granted, parked session to have it claimed. */
  | { kind: "want-session"; session: SessionState }
  | {
      kind: "start-child";
      id: number;
      childId: string;
      name: string;
      input: Payload;
      attached: boolean;
      grants: SessionState[];
      /** The signal by which it tells of its end. */
      follow: string | undefined;
    }
  /** Asks an instance that is no child to end. */
  | {
      kind: "request-end";
      id: number;
      to: string;
      verb: "cancel" | "terminate";
      reason?: string | undefined;
    }
  | { kind: "tell-follower"; follower: Follower; status: string }
  /** Ends the child that event `id` asked for, and no other instance of that name. */
  | { kind: "cancel-child"; id: number; childId: string }
  | {
      kind: "report-to-parent";
      parent: Parent;
      result: { kind: "completed"; output: Payload } | { kind: "failed"; error: Failure };
    }
  /** The keeper of a pool learns of a user, and is started if it is the first. */
  | { kind: "join-pool"; poolId: string; pool: PoolSpec; id: number }
  /** `id`: of the joining. */
  | { kind: "leave-pool"; poolId: string; id: number }
  /** Whoever waits for an update learns how it stands. */
  | { kind: "answer-update"; updateId: string; record: UpdateRecord }
  | { kind: "summary" };
