/** From a won claim to a state that answers calls: find a host, get the config, run `init` or `restore` there. */
import type { SessionClaim } from "../../../schemas/index.ts";
import type { AnySession } from "../../../shared/definitions/index.ts";
import type { HostPlace, RunHooks, SessionFacts, SessionHooks } from "../hosts/index.ts";
import { HostSession } from "../hosts/index.ts";
import type { Surroundings } from "./surroundings.ts";

/** A state and where it lives. */
export interface Housed {
  readonly state: HostSession;
  readonly place: HostPlace;
  readonly warm: boolean;
  readonly restored: boolean;
}

export interface StateRequest {
  readonly claim: SessionClaim;
  readonly definition: AnySession | undefined;
  readonly facts: SessionFacts;
  readonly session: SessionHooks;
  readonly hooks: RunHooks;
  readonly signal: AbortSignal;
  /** A state that outlived the lease before: taken over instead of made (S14). */
  readonly kept: Housed | undefined;
}

export async function makeState(around: Surroundings, request: StateRequest): Promise<Housed> {
  const { claim, definition, facts, session, hooks, signal, kept } = request;
  if (kept) {
    await kept.state.adopt(facts, session);
    return { ...kept, warm: true, restored: false };
  }
  const place = await around.hosts.acquire(definition, signal);
  try {
    const state = new HostSession(place.host, facts, session);
    const { payloads } = around.deps;
    const config = claim.config === undefined ? undefined : await payloads.unwrap(claim.config);
    const restore =
      claim.restore && definition?.restore ? await around.checkpoints.load(claim.restore) : undefined;
    await state.init({ config, restore }, { signal, hooks });
    return { state, place, warm: false, restored: restore !== undefined };
  } catch (error) {
    place.leave({ suspect: signal.aborted });
    throw error;
  }
}
