/** The messages that can reach an instance, parsed, and the decisions they can lead to. */
import type {
  ActivityReport,
  ChildReport,
  FlowOptions,
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
      /** Limits of flow control: the keeper of their key decides when the instance begins. */
      flow?: FlowOptions | undefined;
      granted?: SessionState[] | undefined;
      traceparent?: string | undefined;
      /** True if it is ended before the schedule of its start has fired. */
      delayed?: boolean | undefined;
      /** Set if a client ended the start while it waited for its keeper or its time: its code never runs. */
      over?: { status: "cancelled" | "terminated"; reason?: string | undefined } | undefined;
    }
  /** `ofCaller`: the caller chose the id and may use it again at any time. */
  | {
      kind: "signal";
      name: string;
      payload: Payload;
      messageId?: string | undefined;
      ofCaller?: boolean | undefined;
    }
  | { kind: "update"; name: string; updateId: string; payload: Payload; ofCaller?: boolean | undefined }
  /** `parent`: set if the message is meant only for a child of this parent. */
  | { kind: "cancel"; reason?: string | undefined; parent?: Parent | undefined }
  | { kind: "terminate"; reason?: string | undefined }
  | { kind: "activity"; report: ActivityReport }
  | { kind: "child"; report: ChildReport }
  | { kind: "session"; report: SessionReport }
  /** A deadline may be due, or the code may have been repaired. */
  | { kind: "wake"; wake: Wake | undefined };

export type Accepted =
  | { kind: "facts"; facts: NewEvent[] }
  /** Nothing to record; `why` is the reason. */
  | { kind: "ignored"; why: "repeated" | "late" | "fenced" | "ended" | "unknown" };

export const facts = (...events: NewEvent[]): Accepted => ({ kind: "facts", facts: events });
export const ignored = (why: Extract<Accepted, { kind: "ignored" }>["why"]): Accepted => ({
  kind: "ignored",
  why,
});
