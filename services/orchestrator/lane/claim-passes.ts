/**
 * Passes a claim on from the worker that took it out of its queue to the worker that fits better, and the
 * answer back. The claim must carry its capability (C1): a worker cannot make another one open a session that
 * no orchestrator asked for.
 */
import { SessionClaim } from "../../../schemas/index.ts";
import {
  type Bus,
  type CoreMessage,
  decode,
  type Stoppable,
  type Subjects,
} from "../../../shared/bus/index.ts";
import type { Capabilities } from "../../../shared/capabilities/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Generation } from "../../../shared/fleet/index.ts";
import { announceFault, once, type Runtime, type Service } from "../../../shared/runtime/index.ts";
import { offerMs, offerSubject } from "./claim-offers.ts";

interface ClaimPassesDeps {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Pick<Runtime, "announce">;
  readonly capabilities: Capabilities;
  readonly generation: Pick<Generation, "allows">;
}

export class ClaimPasses implements Service {
  readonly #deps: ClaimPassesDeps;
  #subscription: Stoppable | undefined;

  constructor(deps: ClaimPassesDeps) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    const { bus, names } = this.#deps;
    this.#subscription = await bus.subscribe(names.claimPasses, { queue: "orchestrators" }, (message) =>
      this.#pass(message),
    );
  }

  stop = once(async () => {
    await this.#subscription?.stop();
  });

  /** Without a reply the asking worker treats the other one as silent. */
  async #pass({ subject, body, reply }: CoreMessage): Promise<void> {
    const { bus, names, runtime, capabilities } = this.#deps;
    const claim = decode(SessionClaim, body);
    if (claim.kind === "invalid") return;
    const { instanceId, type } = claim.value;
    const why = capabilities.doubtSession(claim.value, claim.value.capability);
    if (why) return runtime.announce({ kind: "capability.refused", what: "claim", why, instanceId });
    const offer = offerSubject(this.#deps, names.parseClaimPass(subject), type);
    try {
      const answer = await bus.request(offer, body, { timeoutMs: offerMs });
      if (answer.kind === "reply") reply?.(answer.body);
    } catch (error) {
      if (isFault(error, "transient")) return; // the bus is away, and with it the worker that asks
      announceFault(runtime, `claim passed on ${offer}`, error);
    }
  }
}
