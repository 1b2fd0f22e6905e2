/** What an owner before us may have left undone (T3), and what tells of it. */
import type { Wake } from "../../schemas/index.ts";
import type { Delivery } from "../../shared/bus/index.ts";
import type { Instance } from "../../shared/replay/index.ts";

/** Whose effects may not be out: until the first turn of a copy is over, nobody here knows. */
export type Inherited = "nothing" | "an execution's first commit" | "a later commit";

/**
 * A wake nobody waits for. One that the last commit of an owner before us was to take away, to replace, or to follow up
 * says that this owner may have died on its way out.
 */
export function tellsOfDeath(
  inherited: Inherited,
  { state, lastEffects }: Instance,
  { execution, of }: Wake,
  { deliveries }: Delivery,
): boolean {
  if (inherited === "nothing") return false;
  // Somebody was asked to look, and may have died over it.
  if (of === 0) return deliveries > 1;
  if (execution < state.execution) return inherited === "an execution's first commit";
  return lastEffects.some((effect) => {
    if (effect.kind === "task" || effect.kind === "call") return effect.task.id === of;
    return (effect.kind === "unschedule" || effect.kind === "schedule") && effect.of === of;
  });
}
