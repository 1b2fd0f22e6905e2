/**
 * Sends reports about sessions to their instances. A report without an answer is sent again with the same id
 * (BUS-1).
 */
import { needsHeader, type SessionClaim, type SessionReport } from "../../../../schemas/index.ts";
import { type Bus, encode, publishUntilStored, type Subjects } from "../../../../shared/bus/index.ts";
import { isFault } from "../../../../shared/errors/index.ts";
import { announceFault, type Runtime } from "../../../../shared/runtime/index.ts";
import type { ClaimReply } from "../claiming/claim-reply.ts";

type ReportBody = SessionReport["report"];

/** Called before every try; if it returns false, no further try is made. */
export type MayReport = () => boolean;

const backoff = { initialMs: 100, maxMs: 2000, factor: 2 };

export class SessionReporter {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #runtime: Runtime;

  constructor({ bus, names, runtime }: { bus: Bus; names: Subjects; runtime: Runtime }) {
    this.#bus = bus;
    this.#names = names;
    this.#runtime = runtime;
  }

  /** Reports that the state is ready: as the answer to the offer if that is still open, else by the inbox. */
  async ready(
    claim: SessionClaim,
    report: ReportBody,
    mayReport: MayReport,
    reply?: ClaimReply,
  ): Promise<boolean> {
    const { sessionId, attachment, capability } = claim;
    const recorded = await reply?.report({ v: 1, sessionId, attachment, report, capability });
    return recorded || this.session(claim, report, mayReport);
  }

  /** Resolves to true once the report is stored. `nth` numbers reports of one kind under one attachment. */
  async session(claim: SessionClaim, report: ReportBody, mayReport: MayReport, nth = 0): Promise<boolean> {
    const { sessionId, attachment, capability } = claim;
    const body: SessionReport = { v: 1, sessionId, attachment, report, capability };
    const subject = this.#names.verb(claim.instanceId, "session");
    // Workers may not read the inbox.
    const id = {
      msgId: sessionMessageId(claim, report, nth),
      original: "unseen" as const,
      ...((report.kind === "metadata" || report.kind === "blob") && { headers: { [needsHeader]: "2" } }),
    };
    const until = {
      ...{ bus: this.#bus, runtime: this.#runtime, backoff, mayTry: mayReport },
      onFault: (error: unknown) => {
        if (!isFault(error, "transient")) this.#complain(subject, error);
      },
    };
    return (await publishUntilStored(until, subject, encode(body), id)) !== undefined;
  }

  #complain(subject: string, error: unknown): void {
    announceFault(this.#runtime, `report ${subject}`, error);
  }
}

/** The watcher uses the same id for a loss: if both report it, the instance gets it once. */
function sessionMessageId({ sessionId, attachment }: SessionClaim, report: ReportBody, nth: number): string {
  if (report.kind === "lost") return `lost-${sessionId}-${attachment}`;
  if (report.kind === "metadata" || report.kind === "blob")
    return `ses-${sessionId}-${attachment}-${report.kind}-${nth}`;
  const which = report.kind === "checkpointed" ? `-${report.checkpoint.calls}` : "";
  return `ses-${sessionId}-${attachment}-${report.kind}${which}`;
}
