/**
 * The members of a pool: sessions that the keeper opens, loses and lets go. When a member cannot be opened,
 * the keeper tries again at growing intervals.
 */
import { type PoolSpec, poolMetadataKey, sharingMetadataKey } from "../../../schemas/index.ts";
import type {
  AnySession,
  App,
  BareSessionHandle,
  OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { Fault, messageOf } from "../../../shared/errors/index.ts";

/** Members beyond the minimum are let go after this idle time, unless their session type says otherwise. */
export const spareIdle = "60s";
export const lookEveryMs = 30_000;
/** Wait before the keeper tries again to open a member; doubled each time. */
const firstRetryMs = 1_000;

export interface Member {
  readonly id: string;
  /** True for a member beyond the minimum: it parks by itself when idle. */
  readonly spare: boolean;
  /** Undefined until a worker holds the session. */
  session: BareSessionHandle | undefined;
  failed: boolean;
}

interface PoolMembersInit {
  readonly ctx: OrchestrationContext;
  readonly app: App;
  readonly poolId: string;
  readonly pool: PoolSpec;
  /** Number of members made so far, over all executions; used for their ids. */
  readonly made: number;
  readonly onOpened: () => void;
  readonly onFailed: () => void;
}

const gone: ReadonlySet<string> = new Set(["parked", "lost", "failed", "closed"]);

export const stateOf = ({ session, failed }: Member): string =>
  failed ? "failed" : (session?.info.state ?? "opening");
export const isGone = (member: Member): boolean => gone.has(stateOf(member));

export class PoolMembers {
  readonly #init: PoolMembersInit;
  readonly #list: Member[] = [];
  #made: number;
  #failures = 0;
  #retryAt = 0;
  #lastError: string | undefined;

  constructor(init: PoolMembersInit) {
    this.#init = init;
    this.#made = init.made;
  }

  get list(): readonly Member[] {
    return this.#list;
  }

  get made(): number {
    return this.#made;
  }

  /** No further member is opened before this time. */
  get retryAt(): number {
    return this.#retryAt;
  }

  get lastError(): string | undefined {
    return this.#lastError;
  }

  add(spare: boolean): void {
    this.open(`${this.#init.poolId}-m${++this.#made}`, spare);
  }

  open(id: string, spare: boolean): void {
    const member: Member = { id, spare, session: undefined, failed: false };
    this.#list.push(member);
    this.whenHeld(member);
  }

  /**
   * Calls `onOpened` when a worker holds the session. A known member is not opened anew: the same id is the
   * same session.
   */
  whenHeld(member: Member): void {
    const { ctx, poolId, pool, onOpened, onFailed } = this.#init;
    const { id, spare } = member;
    const definition = this.#definition();
    const metadata = { [poolMetadataKey]: poolId };
    member.session = undefined;
    const opening = ctx.openSession(definition, {
      id,
      config: pool.config && "json" in pool.config ? pool.config.json : undefined,
      onLost: "reclaim",
      maxInitAttempts: 5,
      idleTimeout: spare ? (definition.options.idleTimeout ?? spareIdle) : 0,
      metadata: pool.sharing ? { ...metadata, [sharingMetadataKey]: pool.sharing } : metadata,
      // Members of a pool should be spread over workers rather than be placed where the type is warm.
      placement: { affinityKey: id },
    });
    opening.then(
      (session) => {
        member.session = session;
        this.#failures = 0;
        this.#lastError = undefined;
        onOpened();
      },
      (error: unknown) => {
        member.failed = true;
        this.#retryAt = ctx.now() + Math.min(lookEveryMs, firstRetryMs * 2 ** this.#failures++);
        this.#lastError = messageOf(error);
        ctx.log.warn(`pool member ${id} could not be opened, retrying: ${this.#lastError}`);
        onFailed();
      },
    );
  }

  async letGo(member: Member): Promise<void> {
    this.#list.splice(this.#list.indexOf(member), 1);
    await member.session?.close();
  }

  /**
   * The pool's users know the session type, so some deployment has it: the keeper waits until this one does
   * (T6).
   */
  #definition(): AnySession {
    const { app, pool } = this.#init;
    const definition = app.sessions.get(pool.type);
    if (definition) return definition;
    throw new Fault("nondeterminism", {
      code: "unknown_session_type",
      message: `no session type named "${pool.type}" in this deployment`,
      hint: "Deploy the application that uses the pool to every orchestrator.",
    });
  }
}
