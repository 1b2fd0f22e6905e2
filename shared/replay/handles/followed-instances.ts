/** Operations on instances that are not children, for the engine's own keepers only. */

import { InstanceId, Name } from "../../../schemas/index.ts";
import type { OrchestrationContext } from "../../definitions/index.ts";
import { runnerOf } from "./context.ts";
import { requireId } from "./require.ts";
import { snapshot } from "./snapshot.ts";

interface Followed {
  readonly name: string;
  readonly input: unknown;
  readonly id: string;
  /** The signal that reports its end to the caller. */
  readonly signal: string;
}

/** Starts an instance that does not end with this one. Its end comes back as a signal. */
export function spawnFollowed(ctx: OrchestrationContext, { name, input, id, signal }: Followed): void {
  const runner = runnerOf(ctx);
  const { payload, bytes } = snapshot(input, `input of "${name}"`);
  runner.issue(
    {
      kind: "child.scheduled",
      name: requireId(Name, "orchestration name", name),
      childId: requireId(InstanceId, "instance id", id),
      input: payload,
      mode: "detached",
      grants: [],
      follow: Name.parse(signal),
    },
    bytes,
  );
}

/** Asks any instance to end. */
export function requestEnd(
  ctx: OrchestrationContext,
  to: string,
  verb: "cancel" | "terminate",
  reason: string,
): void {
  runnerOf(ctx).issue({ kind: "end.requested", to: InstanceId.parse(to), verb, reason });
}
