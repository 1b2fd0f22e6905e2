import type { Delivery } from "../../shared/bus/index.ts";
import type { InboxMessage } from "../../shared/replay/index.ts";

/** One message that waits for a turn of its instance. */
export interface Mail {
  message: InboxMessage;
  /** Undefined for messages of this process to itself, such as a local timer, and for reports by the lane. */
  delivery: Delivery | undefined;
  /** Called when the turn is over and all its effects are published. */
  done?: (() => void) | undefined;
  /**
   * True if the message was set aside: it is not redelivered to the next owner, so it cannot anchor work on
   * the lane.
   */
  aside?: true | undefined;
  /**
   * For reports by the lane: called instead of `done` if no message would anchor the effects of the report
   * (LANE-1).
   */
  elsewhere?: (() => void) | undefined;
  /** Id of a task that was out on the lane and that no worker holds any more. */
  recalled?: number | undefined;
  /** Why only a newer process can read the message: the instance waits for one (E1). */
  newer?: string | undefined;
}

/** Makes an instance take a turn, which may do nothing. */
export const wakeUp: Mail = { message: { kind: "wake", wake: undefined }, delivery: undefined };

/** The session whose loss the message reports. */
export const lostSession = ({ message }: Mail): string | undefined =>
  message.kind === "session" && message.report.report.kind === "lost" ? message.report.sessionId : undefined;
