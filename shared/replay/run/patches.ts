/** Remembers for each `ctx.patched(id)` if this instance reached that place first with the changed code. */
import type { HistoryEvent } from "../../../schemas/index.ts";
import { SparseMap } from "../../runtime/index.ts";

export class Patches {
  readonly #known = new SparseMap<string, boolean>();

  /** `expected`: the recorded commands still to be issued; undefined when live. `mark` records the patch. */
  reached(patch: string, expected: readonly HistoryEvent[] | undefined, mark: () => void): boolean {
    const known = this.#known.get(patch);
    if (known !== undefined) return known;
    const next = expected?.[0];
    const marked = expected === undefined || (next?.kind === "patch.marked" && next.patch === patch);
    if (marked) mark();
    this.#known.set(patch, marked);
    return marked;
  }
}
