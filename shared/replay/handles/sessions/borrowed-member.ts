/**
 * A member of an exclusive pool, as the borrower's code sees it: a session like any other, given back instead
 * of closed. The lender owns it; the borrower knows it by the lender's reports, like a session granted to a
 * child.
 */

import { EventId, type NewEvent } from "../../../../schemas/index.ts";
import type { AnySession, BareSessionHandle } from "../../../definitions/index.ts";
import { SessionUnusable } from "../../../errors/index.ts";
import type { Context } from "../context.ts";
import { cancellable } from "../promise-combinators.ts";
import { Scope } from "../scope.ts";
import { handled } from "../snapshot.ts";
import type { WantedPool } from "./pool-handle.ts";
import { makeHandle } from "./session-handle.ts";

/**
 * Waits until the pool has a member for this instance. If the wait is cancelled, the instance has left the
 * pool and given back any member it was lent.
 */
export function borrowMember(
  ctx: Context,
  type: AnySession,
  { poolId, pool, bytes }: WantedPool,
): Promise<BareSessionHandle> {
  const { runner } = ctx;
  const waiting = new Scope(ctx.scopeOf, false);
  let left: NewEvent<"pool.left"> | undefined;
  let handle: BareSessionHandle | undefined;
  const lent = ctx.within(waiting).operation((operation) => {
    const id = runner.issue({ kind: "pool.joined", poolId, pool }, bytes);
    const leave: NewEvent<"pool.left"> = { kind: "pool.left", poolId, of: EventId.parse(id) };
    left = leave;
    return { id, operation: { ...operation, cancelCommand: () => leave } };
  });
  const promise = lent.then((member) => {
    const id = String(member);
    let returned: Error | undefined;
    handle = makeHandle(ctx, id, type, {
      // After it was given back, another instance may have the member, or this one again by another handle.
      over: () => returned,
      giveBack: () => {
        if (returned || !left) return;
        returned = new SessionUnusable({
          code: "session_unusable",
          message: `member ${id} of pool ${poolId} was given back`,
        });
        runner.returnMember(left, id);
      },
    });
    return handle;
  });
  promise.catch(handled);
  const callOff = () => waiting.cancel("no code waits for it");
  const lose = () => {
    callOff();
    // The member came at the same moment as the race was decided: no other code has the handle.
    void handle?.close();
  };
  return cancellable(promise, callOff, lose);
}
