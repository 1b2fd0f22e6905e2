/** From a won claim to a state that answers calls: find a host, get the config, run `init` or `restore` there. */
import type { SessionClaim } from "../../../../schemas/index.ts";
import type { AnySession } from "../../../../shared/definitions/index.ts";
import { within } from "../../../../shared/runtime/index.ts";
import { HostSession, type RunHooks, type SessionFacts, type SessionHooks } from "../../hosts/index.ts";
import type { SessionServices } from "../session-services.ts";
import type { Housed } from "./housed.ts";
import { shutDown } from "./shut-down-session.ts";

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

/** The same state in another host of its kind, by way of a checkpoint. The old one is left as it was. */
export async function moveState(
  around: SessionServices,
  from: Housed,
  request: Omit<StateRequest, "kept">,
): Promise<Housed> {
  const bytes = await from.state.checkpoint();
  return makeIn(around, { ...request, kept: undefined }, bytes);
}

export async function makeState(around: SessionServices, request: StateRequest): Promise<Housed> {
  const { claim, definition, facts, session, kept } = request;
  if (kept) {
    await kept.state.adopt(facts, session);
    return { ...kept, warm: true, restored: false };
  }
  const { restore } = claim;
  const bytes = restore && definition?.restore ? await around.checkpoints.load(restore) : undefined;
  return makeIn(around, request, bytes);
}

async function makeIn(
  around: SessionServices,
  { claim, definition, facts, session, hooks, signal }: StateRequest,
  restore: Uint8Array | undefined,
): Promise<Housed> {
  const place = await around.hosts.acquire(definition, signal);
  try {
    const state = new HostSession(place.host, facts, session);
    const { payloads } = around.deps;
    const config = claim.config === undefined ? undefined : await payloads.unwrap(claim.config);
    const housed = { state, place, warm: false, restored: restore !== undefined };
    await bounded(state.init({ config, restore }, { signal, hooks }), signal, around.timing.closeMs, () =>
      // What comes of it after all has no owner.
      shutDown(housed, { hooks, closeMs: around.timing.closeMs }),
    );
    return housed;
  } catch (error) {
    place.leave({ suspect: signal.aborted });
    throw error;
  }
}

/** An `init` that was told to stop and does not is left to itself after a while. */
function bounded(
  init: Promise<void>,
  signal: AbortSignal,
  graceMs: number,
  onLate: () => Promise<void>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      void within(graceMs, init).then((how) => {
        if (how !== "late") return;
        reject(signal.reason);
        init.then(onLate, () => undefined);
      });
    };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    init.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
