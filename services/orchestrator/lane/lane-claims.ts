/** The claims that one instance offers straight to workers, and the ready states it has learned of by their answers. */
import type { SessionClaim, SessionReport } from "../../../schemas/index.ts";
import type { Effect, InstanceState } from "../../../shared/replay/index.ts";
import type { Lane } from "./lane.ts";

export interface Activated {
  readonly workerId: string;
  readonly report: SessionReport;
}

/** `unsettled`: the claim must go by the queue (CLAIM-5). `activated`: a report waits for its turn. */
export type Offered = "unsettled" | "settled" | "activated";

export class LaneClaims {
  readonly #lane: Lane;
  readonly #instanceId: string;
  readonly #onActivated: (activated: Activated) => void;
  readonly #planned = new Set<string>();
  /** Session id → attachment, for reports that wait for their turn. */
  readonly #reported = new Map<string, number>();

  constructor(lane: Lane, instanceId: string, onActivated: (activated: Activated) => void) {
    this.#lane = lane;
    this.#instanceId = instanceId;
    this.#onActivated = onActivated;
  }

  get hasPlans(): boolean {
    return this.#planned.size > 0;
  }

  forgetPlans(): void {
    this.#planned.clear();
  }

  plan(effect: Extract<Effect, { kind: "claim" }>): void {
    if (this.#lane.offers.enabled) this.#planned.add(effect.session.sessionId);
  }

  isPlanned(sessionId: string): boolean {
    return this.#planned.has(sessionId);
  }

  async offer(claim: SessionClaim): Promise<Offered> {
    this.#planned.delete(claim.sessionId);
    const settled = await this.#lane.claims.offer(claim);
    if (!settled) return "unsettled";
    const { workerId, report } = settled;
    if (!report || !this.#lane.believesSession(this.#instanceId, report)) return "settled";
    this.#reported.set(claim.sessionId, claim.attachment);
    this.#onActivated({ workerId, report });
    return "activated";
  }

  /** True while a report waits for its turn: the anchor must stand for what that turn does (LANE-1). */
  isWaiting({ sessions }: Readonly<InstanceState>): boolean {
    for (const [sessionId, attachment] of this.#reported) {
      const session = sessions.get(sessionId);
      const isOpening = session?.phase.kind === "opening" || session?.phase.kind === "claimed";
      if (!session || !isOpening || session.attachments !== attachment) this.#reported.delete(sessionId);
    }
    return this.#reported.size > 0;
  }
}
