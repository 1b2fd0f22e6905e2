import type { Delivery } from "../../shared/bus/index.ts";
import type { InboxMessage } from "../../shared/replay/index.ts";

/** One message that waits for a turn of its instance. */
export interface Mail {
  message: InboxMessage;
  /** Absent for what this process tells itself, as a local timer does, and for what came by the lane. */
  delivery: Delivery | undefined;
  /** Called when its turn is over and all that follows from it is out. */
  done?: (() => void) | undefined;
  /** It lay aside: nothing brings it to the next owner by itself, so it stands for no work on the lane. */
  aside?: true | undefined;
  /** It came by the lane: called instead where nothing would stand for what it leads to (LANE-1). */
  elsewhere?: (() => void) | undefined;
  /** A task that was out on the lane and is nobody's any more. */
  recalled?: number | undefined;
  /** Why it takes a newer process to read it: the instance waits for one (E1). */
  newer?: string | undefined;
}
