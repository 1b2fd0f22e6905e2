/**
 * Steps that are undone in reverse order when a later one fails. The history records each undo, so after a
 * crash the rest is undone.
 */
import type { OrchestrationContext, Saga } from "../../definitions/index.ts";
import { Fault, HoldfastError, toFailure } from "../../errors/index.ts";
import { ContinueAsNew } from "../run/code-ending.ts";

type Undo = (ctx: OrchestrationContext) => unknown;

export async function runSaga<T>(ctx: OrchestrationContext, steps: (saga: Saga) => Promise<T>): Promise<T> {
  const undos: Undo[] = [];
  const saga: Saga = {
    compensate: (undo) => void undos.push(undo),
    async step(run, undo) {
      const done = await run(ctx);
      undos.push((inner) => undo(inner, done));
      return done;
    },
  };
  try {
    return await steps(saga);
  } catch (error) {
    if (isNoFailure(error)) throw error;
    const failures = await undoAll(ctx, undos);
    if (failures.length === 0) throw error;
    throw compensationFailed(error, failures, undos.length);
  }
}

/** Runs every undo, even if one fails; a cancelled instance undoes too. */
async function undoAll(ctx: OrchestrationContext, undos: readonly Undo[]): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const undo of [...undos].reverse()) {
    try {
      await ctx.uncancellable(async (inner) => undo(inner));
    } catch (failure) {
      if (isNoFailure(failure)) throw failure;
      failures.push(failure);
    }
  }
  return failures;
}

/** Continue-as-new is no failure, and the engine stops code that broke the rules of replay. */
const isNoFailure = (thrown: unknown): boolean => thrown instanceof ContinueAsNew || thrown instanceof Fault;

function compensationFailed(error: unknown, failures: readonly unknown[], undos: number): HoldfastError {
  const why = toFailure(error);
  const details = failures.map((failure) => {
    const { code, message } = toFailure(failure);
    return { code, message };
  });
  return new HoldfastError({
    code: "compensation_failed",
    message: `${failures.length} of ${undos} compensations failed after: ${why.message}`,
    details: { failures: details, cause: { code: why.code, message: why.message } },
    cause: error,
  });
}
