/**
 * The answer to an offered claim. If the state is ready within a few milliseconds, its report is part of the
 * answer, which saves the instance a message in its inbox; the report goes there all the same if the
 * orchestrator does not confirm it (LANE-3).
 */
import {
  type ClaimAnswer,
  laneOwnerHeader,
  type SessionReport,
  sessionRecordingKey,
} from "../../../../schemas/index.ts";
import { type CoreMessage, encode } from "../../../../shared/bus/index.ts";
import type { Timer } from "../../../../shared/runtime/index.ts";
import { soonMs } from "../../lane/index.ts";
import type { SessionDeps } from "../session-deps.ts";

export class ClaimReply {
  /** The orchestrator that offered the claim and takes the report with the answer. */
  readonly #owner: string | undefined;
  readonly #deps: SessionDeps;
  readonly #used: () => number;
  #reply: CoreMessage["reply"];
  #ready: SessionReport | undefined;
  #soon: Timer | undefined;

  constructor(deps: SessionDeps, { headers, reply }: CoreMessage, used: () => number) {
    this.#deps = deps;
    this.#used = used;
    this.#reply = reply;
    this.#owner = deps.recordings && headers[laneOwnerHeader];
  }

  get isToOwner(): boolean {
    return this.#owner !== undefined;
  }

  /** Waits a little for the report of a claim that was taken from an orchestrator. */
  answer(verdict: ClaimAnswer["verdict"]): void {
    const send = () => this.#send(verdict);
    if (verdict === "taken" && this.isToOwner && !this.#ready)
      this.#soon = this.#deps.runtime.clock.after(soonMs, send);
    else send();
  }

  /** Resolves to true once the report is in the history; otherwise it must go through the inbox. */
  async report(report: SessionReport): Promise<boolean> {
    if (this.#owner === undefined || !this.#reply || !this.#deps.recordings) return false;
    this.#ready = report;
    const recorded = this.#deps.recordings.wait(sessionRecordingKey(report), this.#owner);
    if (this.#soon) this.#send("taken");
    return recorded;
  }

  #send(verdict: ClaimAnswer["verdict"]): void {
    this.#soon?.cancel();
    this.#soon = undefined;
    const reply = this.#reply;
    this.#reply = undefined;
    const answer: ClaimAnswer = { verdict, used: this.#used(), report: this.#ready };
    reply?.(encode(answer));
  }
}
