/**
 * Calls that an orchestrator, or a caller from outside, sends straight to the holder of a session (the lane),
 * on `sessions.<workerId>.<sessionId>.calls.<type>`. The holder listens from the claim of the session to the end of
 * its attachment. A call that the holder does not take, or that reaches no holder, comes again by the queue
 * of `WorkFeed`.
 */
import { callerHeader, LaneCalls, type SessionClaim } from "../../../../schemas/index.ts";
import { type CoreMessage, decode, type Stoppable } from "../../../../shared/bus/index.ts";
import { announceFault, once, type Service } from "../../../../shared/runtime/index.ts";
import { LanePath } from "../../lane/index.ts";
import type { SessionDeps } from "../session-deps.ts";
import { CallerCalls } from "./caller-calls.ts";
import type { OnWork } from "./work-feed.ts";

/** One session held here; two attachments of it may overlap while the older one ends. */
interface Listening {
  attachments: number;
  readonly subscription: Promise<Stoppable | undefined>;
}

export class DirectCalls implements Service {
  readonly #deps: SessionDeps;
  readonly #onWork: OnWork;
  readonly #sessions = new Map<string, Listening>();
  readonly #callers: CallerCalls;
  #older: Stoppable | undefined;

  constructor(deps: SessionDeps, onWork: OnWork) {
    this.#deps = deps;
    this.#onWork = onWork;
    this.#callers = new CallerCalls(deps, onWork);
  }

  async start(): Promise<void> {
    const { bus, names, identity } = this.#deps;
    // Orchestrators of 0.1.0 send to this subject, and so do newer ones while a process of 0.1.0 is alive.
    this.#older = await bus.subscribe(names.laneOfSessions(identity.workerId), {}, (message) =>
      this.#receive(message, message.subject.slice(message.subject.lastIndexOf(".") + 1)),
    );
  }

  stop = once(async () => {
    this.#callers.stop();
    await this.#older?.stop();
    const all = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(all.map(async ({ subscription }) => (await subscription)?.stop()));
  });

  attached({ sessionId, type }: Pick<SessionClaim, "sessionId" | "type">): void {
    const known = this.#sessions.get(sessionId);
    if (known) known.attachments++;
    else this.#sessions.set(sessionId, { attachments: 1, subscription: this.#listen(sessionId, type) });
  }

  detached(sessionId: string): void {
    const known = this.#sessions.get(sessionId);
    if (!known || --known.attachments > 0) return;
    this.#sessions.delete(sessionId);
    void known.subscription.then((subscription) => subscription?.stop());
  }

  /**
   * Not awaited: the server sees the subscription before it sees the report after which orchestrators send
   * calls here.
   */
  async #listen(sessionId: string, type: string): Promise<Stoppable | undefined> {
    const { bus, names, identity, runtime } = this.#deps;
    const subject = names.sessionCalls(type, identity.workerId, sessionId);
    try {
      return await bus.subscribe(subject, { unconfirmed: true }, (message) =>
        this.#receive(message, sessionId),
      );
    } catch (error) {
      // Calls still reach this session by the queue.
      announceFault(runtime, `subscription to ${subject}`, error);
      return undefined;
    }
  }

  #receive(message: CoreMessage, sessionId: string): void {
    const decoded = decode(LaneCalls, message.body);
    const calls = decoded.kind === "ok" ? decoded.value.calls : [];
    const [call] = calls;
    if (call && message.headers[callerHeader]) return this.#callers.receive(message, sessionId, call);
    const path = new LanePath(this.#deps, message);
    // All calls of a message are of one epoch: the attachment that takes the first takes the rest, and knows
    // repeats.
    const taken = calls.filter((call) => this.#onWork(sessionId, call, path));
    // One call: its result can be the reply. Several calls: the reply is a receipt.
    if (taken.length > 0) path.take({ atOnce: calls.length > 1 });
    else path.refuse();
  }
}
