/** The messages to publish after a commit (T2), as data. Each is safe to publish twice. */
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
  /** Run the current attempt in this process; if this process dies, the next owner runs it again. */
  | { kind: "local"; task: OpenTask }
  /** A local activity has ended: it need not run again if this process dies. */
  | { kind: "forget-local"; of: number }
  | { kind: "cancel-task"; task: OpenTask; on: Attachment | undefined }
  /** Wake the instance; a later schedule with the same `of` replaces this one. */
  | { kind: "schedule"; of: number; at: number }
  | { kind: "unschedule"; of: number }
  /** Remove the schedule of the instance's own start. */
  | { kind: "forget-delayed-start" }
  /** `held`: its holder, recorded even if the session has ended again at the end of the turn. */
  | { kind: "register-session"; sessionId: string; held?: Attachment }
  | { kind: "claim"; session: SessionState; attachment: number; deadlineAt: number; restore: boolean }
  | { kind: "withdraw-claim"; session: SessionState; attachment: number }
  | { kind: "close-session"; session: SessionState; on: Attachment; reason: string | undefined }
  /** Report to the instances that may use this session what happened to it, and under which epoch. */
  | { kind: "tell-grantees"; session: SessionState; epoch: number | undefined; to: string[] }
  /** Report to a borrower which member it got. */
  | { kind: "lend"; session: SessionState & { lending: Lending } }
  /** Delete what a session no longer refers to. If it fails, the watcher deletes it with the session. */
  | { kind: "forget-blobs"; keys: string[] }
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
      /** The signal that reports its end. */
      follow: string | undefined;
    }
  /** Ask an instance that is no child to end. */
  | {
      kind: "request-end";
      id: number;
      to: string;
      verb: "cancel" | "terminate";
      reason?: string | undefined;
    }
  | { kind: "tell-follower"; follower: Follower; status: string }
  /** End the child that event `id` started, and no other instance with its id. */
  | { kind: "cancel-child"; id: number; childId: string }
  | {
      kind: "report-to-parent";
      parent: Parent;
      result: { kind: "completed"; output: Payload } | { kind: "failed"; error: Failure };
    }
  /** Announce a user to the keeper of a pool, and start the keeper if this is the first user. */
  | { kind: "join-pool"; poolId: string; pool: PoolSpec; id: number }
  /** `id`: the event that joined the pool. */
  | { kind: "leave-pool"; poolId: string; id: number }
  /** Report the state of an update to the callers that wait for it. */
  | { kind: "answer-update"; updateId: string; record: UpdateRecord }
  | { kind: "summary" };
