/** Work with a time limit: a timer and a scope; the first to end ends the other. */

import type { OrchestrationContext } from "../../definitions/index.ts";
import { TimeoutError } from "../../errors/index.ts";
import { type Duration, parseDuration } from "../../runtime/index.ts";
import type { Context } from "./context.ts";
import { cancellable } from "./promise-combinators.ts";
import { Scope } from "./scope.ts";
import { handled, rejected } from "./snapshot.ts";

export function timeoutScope<T>(
  context: Context,
  duration: Duration,
  what: string,
  work: (inner: OrchestrationContext) => Promise<T>,
): Promise<T> {
  let ms: number;
  try {
    ms = parseDuration(duration, "timeout");
  } catch (error) {
    return rejected(error);
  }
  const { scopeOf } = context;
  const scope = new Scope(scopeOf, false);
  const timing = new Scope(scopeOf, false);
  const timer = context.within(timing).sleep(ms);
  const result = new Promise<T>((resolve, reject) => {
    const begin = async () => work(context.within(scope));
    begin().then(
      (value) => {
        timing.cancel();
        resolve(value);
      },
      (error) => {
        timing.cancel();
        reject(error);
      },
    );
    timer.then(() => {
      // Rejected first: the result of the cancelled work is not used.
      reject(tooLate(what, ms));
      scope.cancel(`${what} was not done within ${ms} ms`);
    }, handled);
  });
  result.catch(handled);
  return cancellable(result, () => {
    scope.cancel();
    timing.cancel();
  });
}

const tooLate = (what: string, ms: number): TimeoutError =>
  new TimeoutError({
    code: "timeout",
    message: `${what} was not done within ${ms} ms`,
    details: { timeout: "scope", ms },
  });
