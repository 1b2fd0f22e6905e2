/** Tells instances what became of their sessions. A report that went unanswered is sent again, same id (BUS-1). */
import type { SessionClaim, SessionReport } from "../../../../schemas/index.ts";
import type { Bus } from "../../../../shared/bus/bus.ts";
import type { Subjects } from "../../../../shared/bus/subjects.ts";
import { isFault, toFailure } from "../../../../shared/errors/index.ts";
import { backoffMs, jittered, type Runtime, sleep } from "../../../../shared/runtime/index.ts";

type Told = SessionReport["report"];

/** Asked before every try: false ends it. */
export type MayTell = () => boolean;

const retry = { initialMs: 100, maxMs: 2000, factor: 2 };
const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

export class SessionReporter {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #runtime: Runtime;

  constructor({ bus, names, runtime }: { bus: Bus; names: Subjects; runtime: Runtime }) {
    this.#bus = bus;
    this.#names = names;
    this.#runtime = runtime;
  }

  /** True once it is stored. */
  session(claim: SessionClaim, report: Told, mayTell: MayTell): Promise<boolean> {
    const { sessionId, attachment } = claim;
    const body: SessionReport = { v: 1, sessionId, attachment, report };
    const subject = this.#names.verb(claim.instanceId, "session");
    return this.#publish(subject, encode(body), sessionMessageId(claim, report), mayTell);
  }

  async #publish(subject: string, body: Uint8Array, msgId: string, mayTell: MayTell): Promise<boolean> {
    const { clock, random } = this.#runtime;
    for (let failed = 1; mayTell(); failed++) {
      if (await this.#try(subject, body, msgId)) return true;
      await sleep(clock, jittered(backoffMs(retry, Math.min(failed, 10)), random));
    }
    return false;
  }

  async #try(subject: string, body: Uint8Array, msgId: string): Promise<boolean> {
    try {
      const outcome = await this.#bus.publish(subject, body, { msgId });
      return outcome.kind === "stored";
    } catch (error) {
      if (!isFault(error, "transient")) this.#complain(subject, error);
      return false;
    }
  }

  #complain(subject: string, error: unknown): void {
    const { code, message } = toFailure(error);
    this.#runtime.announce({ kind: "fault", where: `report ${subject}`, code, message, error });
  }
}

/** The watcher's id for a loss is the same: whoever tells first, the instance hears it once. */
function sessionMessageId({ sessionId, attachment }: SessionClaim, report: Told): string {
  if (report.kind === "lost") return `lost-${sessionId}-${attachment}`;
  const which = report.kind === "checkpointed" ? `-${report.checkpoint.calls}` : "";
  return `ses-${sessionId}-${attachment}-${report.kind}${which}`;
}
