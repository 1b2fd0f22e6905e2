/**
 * Reports to the instance the changes that code inside a session makes to its metadata, one report at a time.
 * Changes made while a report is under way go into the next one, so frequent changes cost little.
 */
import { changedMetadata, type MetadataChange, type SessionClaim } from "../../../../schemas/index.ts";
import { requireMetadata } from "../../../../shared/definitions/index.ts";
import { HoldfastError } from "../../../../shared/errors/index.ts";
import { announceFault } from "../../../../shared/runtime/index.ts";
import type { SessionServices } from "../session-services.ts";
import type { MayReport } from "./session-reporter.ts";

export class MetadataReporter {
  readonly #services: SessionServices;
  readonly #claim: SessionClaim;
  readonly #epoch: number;
  readonly #mayReport: MayReport;
  #metadata: Readonly<Record<string, string>>;
  #waiting: MetadataChange | undefined;
  #reports = 0;
  #state: "not ready" | "free" | "reporting" = "not ready";

  constructor(
    services: SessionServices,
    claim: SessionClaim,
    epoch: number,
    mayReport: MayReport,
    /** The previous attachment's reporter, if the same state goes on (S14). */
    before: MetadataReporter | undefined,
  ) {
    this.#services = services;
    this.#claim = claim;
    this.#epoch = epoch;
    this.#mayReport = mayReport;
    this.#metadata = before ? before.#metadata : claim.metadata;
    this.#waiting = before ? before.#waiting : undefined;
  }

  /** The metadata so far; a host that makes the state anew under the same epoch gets it. */
  get metadata(): Readonly<Record<string, string>> {
    return this.#metadata;
  }

  /** Checked here, because a program in another language has not checked it. */
  change(wanted: MetadataChange): void {
    try {
      const { change } = requireMetadata(this.#metadata, wanted);
      this.#metadata = changedMetadata(this.#metadata, change);
      this.#waiting = { ...this.#waiting, ...change };
      void this.#report();
    } catch (error) {
      this.#complain(error);
    }
  }

  /**
   * The instance knows this holder now; an earlier report would have looked like one of an old attachment.
   */
  ready(): void {
    this.#state = "free";
    void this.#report();
  }

  async #report(): Promise<void> {
    if (this.#state !== "free") return;
    this.#state = "reporting";
    const { reporter, deps } = this.#services;
    while (this.#waiting && this.#mayReport()) {
      const change = this.#waiting;
      this.#waiting = undefined;
      if (deps.generation.allows(2)) {
        const report = { kind: "metadata" as const, epoch: this.#epoch, change };
        const stored = await reporter.session(this.#claim, report, this.#mayReport, ++this.#reports);
        if (!stored) this.#keep(change);
      } else {
        this.#complain(
          new HoldfastError({
            code: "needs_newer_fleet",
            message: "metadata set by a call is not recorded while an older version is alive",
          }),
        );
      }
    }
    this.#state = "free";
  }

  /** Keeps a change that was not stored for the next report; changes made since take precedence. */
  #keep(change: MetadataChange): void {
    this.#waiting = { ...change, ...this.#waiting };
  }

  #complain(error: unknown): void {
    announceFault(this.#services.deps.runtime, `metadata of session ${this.#claim.sessionId}`, error);
  }
}
