/** Durable operations: a command in the history, and the promise of its result. */
import { CancelledError } from "../../errors/index.ts";
import { byEngine } from "../run/promise-graph.ts";
import type { Operation } from "../run/round.ts";
import type { Context } from "./context.ts";
import { cancellable } from "./promise-combinators.ts";
import type { ScopeMember } from "./scope.ts";
import { handled } from "./snapshot.ts";

/**
 * Makes a durable operation from the command that `begin` issues. Nothing begins in a cancelled scope.
 * Leaving the scope, losing a race and cancellation all end the operation the same way.
 */
export function durableOperation(
  { runner, scopeOf: scope }: Context,
  begin: (operation: Operation) => { id: number; operation: Operation },
): Promise<unknown> {
  const member: ScopeMember = { cancel: handled };
  const start = (resolve: (value: unknown) => void, reject: (error: unknown) => void): void => {
    if (scope.cancelled) return reject(new CancelledError(scope.reason));
    const { id, operation } = begin({
      scope,
      resolve: (value) => {
        scope.leave(member);
        resolve(value);
      },
      reject: (error) => {
        scope.leave(member);
        reject(error);
      },
      cancelCommand: undefined,
    });
    runner.operations.set(id, operation);
    member.cancel = () => runner.cancel(id, operation, scope.reason);
    scope.join(member);
  };
  const promise = byEngine(() => new Promise<unknown>(start));
  promise.catch(handled);
  return cancellable(promise, () => member.cancel());
}
