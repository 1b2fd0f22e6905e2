/** What can reach an instance, parsed, and what it can mean. */
import type {
  ActivityReport,
  ChildReport,
  Follower,
  NewEvent,
  Parent,
  Payload,
  SessionReport,
  SessionState,
  Wake,
} from "../../../schemas/index.ts";

export type InboxMessage =
  | {
      kind: "start";
      name: string;
      input: Payload;
      parent?: Parent | undefined;
      follower?: Follower | undefined;
      granted?: SessionState[] | undefined;
      traceparent?: string | undefined;
    }
  | { kind: "signal"; name: string; payload: Payload; messageId?: string | undefined }
  /** `updateId` is the caller's. */
  | { kind: "update"; name: string; updateId: string; payload: Payload }
  /** `parent`: meant for its child alone. */
  | { kind: "cancel"; reason?: string | undefined; parent?: Parent | undefined }
  | { kind: "terminate"; reason?: string | undefined }
  | { kind: "activity"; report: ActivityReport }
  | { kind: "child"; report: ChildReport }
  | { kind: "session"; report: SessionReport }
  /** Something may be due, or the code may have been mended. */
  | { kind: "wake"; wake: Wake | undefined };

export type Accepted =
  | { kind: "facts"; facts: NewEvent[] }
  /** Nothing to record; `why` says what it was. */
  | { kind: "ignored"; why: "repeated" | "late" | "fenced" | "ended" | "unknown" };

export const facts = (...events: NewEvent[]): Accepted => ({ kind: "facts", facts: events });
export const ignored = (why: Extract<Accepted, { kind: "ignored" }>["why"]): Accepted => ({
  kind: "ignored",
  why,
});
