/**
 * From a won claim to a state that answers calls: finds a host, gets the config, runs `init` or `restore`
 * there.
 */
import type { SessionClaim } from "../../../../schemas/index.ts";
import type { AnySession } from "../../../../shared/definitions/index.ts";
import { type Clock, within } from "../../../../shared/runtime/index.ts";
import {
  type Host,
  HostSession,
  type RunHooks,
  type SessionFacts,
  type SessionHooks,
} from "../../hosts/index.ts";
import { waitForStore } from "../../wait-for-store.ts";
import type { SessionServices } from "../session-services.ts";
import type { PlacedState } from "./placed-state.ts";
import { shutDown } from "./shut-down-session.ts";

export interface StateRequest {
  readonly claim: SessionClaim;
  readonly definition: AnySession | undefined;
  readonly facts: SessionFacts;
  readonly session: SessionHooks;
  readonly hooks: RunHooks;
  readonly signal: AbortSignal;
  /** Called with the chosen host before any code of the session runs there. */
  readonly onPlace?: (host: Host) => void;
  /** A state that outlived the previous lease: taken over instead of made (S14). */
  readonly kept: PlacedState | undefined;
}

/** Makes the same state in another host of its kind from a checkpoint. The old state is left unchanged. */
export async function moveState(
  services: SessionServices,
  from: PlacedState,
  request: Omit<StateRequest, "kept">,
): Promise<PlacedState> {
  const bytes = await from.state.checkpoint();
  return makeIn(services, { ...request, kept: undefined }, bytes);
}

export async function makeState(services: SessionServices, request: StateRequest): Promise<PlacedState> {
  const { claim, definition, facts, session, kept } = request;
  if (kept) {
    await kept.state.adopt(facts, session);
    return { ...kept, warm: true, restored: false };
  }
  const { restore } = claim;
  const bytes =
    restore && definition?.restore
      ? await waitForStore(services.deps, request.signal, () => services.checkpoints.load(restore))
      : undefined;
  return makeIn(services, request, bytes);
}

async function makeIn(
  services: SessionServices,
  { claim, definition, facts, session, hooks, signal, onPlace }: StateRequest,
  restore: Uint8Array | undefined,
): Promise<PlacedState> {
  const place = await services.hosts.acquire(definition, signal);
  onPlace?.(place.host);
  try {
    const state = new HostSession(place.host, facts, session);
    const { config: sent } = claim;
    const config =
      sent && (await waitForStore(services.deps, signal, () => services.deps.payloads.unwrap(sent)));
    const placed = { state, place, warm: false, restored: restore !== undefined };
    const { closeMs } = services.timing;
    const { clock } = services.deps.runtime;
    await bounded(state.init({ config, restore }, { signal, hooks }), signal, { closeMs, clock }, () =>
      // A state that is made too late has no owner: shut it down.
      shutDown(placed, { hooks, closeMs, clock }),
    );
    return placed;
  } catch (error) {
    place.leave({ suspect: signal.aborted });
    throw error;
  }
}

/** An `init` that was aborted and does not stop is abandoned after a while. */
function bounded(
  init: Promise<void>,
  signal: AbortSignal,
  { closeMs, clock }: { closeMs: number; clock: Clock },
  onLate: () => Promise<void>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      void within(closeMs, init, clock).then((how) => {
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
