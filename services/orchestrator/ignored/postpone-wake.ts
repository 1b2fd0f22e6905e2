/**
 * Schedules fire by the server's clock. Where this process's clock is behind, an instance is woken before its time: the
 * wake is postponed by the difference, or only the memory of this process would still know of the deadline (T3, F30).
 */
import type { Wake } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/index.ts";
import { deadlineOf, type InstanceState } from "../../../shared/replay/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EffectTarget } from "../publishing/effects.ts";
import { publishSurely } from "../publishing/publish.ts";

/** Whether it was. Not one that fired for an earlier deadline: what replaced that has a schedule of its own. */
export async function postponeWake(
  { names, runtime }: EngineDeps,
  state: Readonly<InstanceState>,
  wake: Wake,
  delivery: Delivery,
  { now, target }: { now: number; target: EffectTarget },
): Promise<boolean> {
  const { instanceId } = state;
  const { execution, of } = wake;
  const deadlineAt = deadlineOf(state, wake);
  if (deadlineAt === undefined || deadlineAt <= now || delivery.at < deadlineAt) return false;
  // By this clock as it is: within a history time may have been held up by owners whose clocks are ahead.
  const at = delivery.at + (deadlineAt - runtime.clock.now());
  const seq = await publishSurely(target.outbox, names.timer(instanceId, execution, of), wake, {
    msgId: `again-${instanceId}-${execution}-${of}-${delivery.seq}`,
    schedule: { at, target: names.verb(instanceId, "wake") },
  });
  if (seq !== undefined && execution === state.execution) target.schedules.set(of, seq);
  return true;
}
