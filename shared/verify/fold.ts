/** Reads one history once: checks its own laws on the way and keeps the state it ends with. */
import type { BlobRef, Commit, HistoryEvent } from "../../schemas/index.ts";
import { apply, type InstanceState, initialState } from "../replay/index.ts";
import { blobsIn } from "./blobs.ts";
import { executionOf, watchHistory } from "./history/index.ts";
import type { OnViolation } from "./report.ts";

export interface Loss {
  sessionId: string;
  attachment: number;
  reason: string;
  at: number;
}

/** A session that its code closed, or that ended with its instance, and the last attachment it had asked for. */
export interface Closing {
  sessionId: string;
  attachment: number;
}

/** How many referenced values are checked at a time. */
const blobsAtOnce = 100;

export interface Folded {
  state: InstanceState;
  commits: number;
  events: number;
  last: Commit | undefined;
  /** The state that the summary must show at least: the end of the last commit that asked for a summary. */
  shownThrough: { execution: number; events: number } | undefined;
  losses: Loss[];
  closings: Closing[];
  cancelRequestedAt: number | undefined;
  endedAt: number | undefined;
}

export class Folding {
  readonly #watch: ReturnType<typeof watchHistory>;
  readonly #instanceId: string;
  readonly #extra: ((commit: Commit, execution: number) => void) | undefined;
  readonly #timers = new Map<number, number>();
  readonly #late: number[] = [];
  /** The last attachment that was asked for, by the session that is open. */
  readonly #attachments = new Map<string, number>();
  #blobs: BlobRef[] = [];
  #folded: Folded;

  constructor(
    instanceId: string,
    onViolation: OnViolation,
    extra?: (commit: Commit, execution: number) => void,
  ) {
    this.#instanceId = instanceId;
    this.#watch = watchHistory(onViolation);
    this.#extra = extra;
    this.#folded = {
      state: initialState(instanceId),
      commits: 0,
      events: 0,
      last: undefined,
      shownThrough: undefined,
      losses: [],
      closings: [],
      cancelRequestedAt: undefined,
      endedAt: undefined,
    };
  }

  commit(commit: Commit): void {
    const execution = executionOf(commit);
    this.#watch.commit(commit, execution);
    this.#extra?.(commit, execution);
    const folded = this.#folded;
    if (folded.last && execution !== executionOf(folded.last)) {
      folded.state = initialState(this.#instanceId);
      folded.cancelRequestedAt = undefined;
      this.#timers.clear();
    }
    const { state } = folded;
    if (state.execution < commit.execution) state.execution = commit.execution;
    let shows = false;
    for (const event of commit.events) {
      // A damaged history, already reported, may not fold.
      const effects = attempt(() => apply(state, event, commit.at)) ?? [];
      shows ||= effects.some((effect) => effect.kind === "summary");
      this.#note(event, commit.at);
    }
    for (const seq of commit.inbox) state.applied.add(seq);
    if (shows) folded.shownThrough = { execution: state.execution, events: state.lastEventId };
    folded.commits++;
    folded.events += commit.events.length;
    folded.last = commit;
    this.#blobs.push(...blobsIn(commit.events));
  }

  /** The references met so far, in groups: check them before reading the next page. */
  takeBlobs(all: boolean): BlobRef[] {
    if (!all && this.#blobs.length < blobsAtOnce) return [];
    const blobs = this.#blobs;
    this.#blobs = [];
    return blobs;
  }

  /** How many milliseconds late each timer fired. */
  get lateness(): readonly number[] {
    return this.#late;
  }

  end(): Folded {
    this.#watch.end?.();
    return this.#folded;
  }

  #note(event: HistoryEvent, at: number): void {
    const folded = this.#folded;
    switch (event.kind) {
      case "session.lost":
        if (event.on)
          folded.losses.push({
            sessionId: event.sessionId,
            attachment: event.on.attachment,
            reason: event.reason,
            at,
          });
        return;
      case "session.requested":
        this.#attachments.set(event.sessionId, event.attachment);
        return;
      case "session.closed":
        this.#close(event.sessionId);
        return;
      case "timer.created":
        this.#timers.set(event.id, event.fireAt);
        return;
      case "timer.fired": {
        const fireAt = this.#timers.get(event.of);
        this.#timers.delete(event.of);
        if (fireAt !== undefined) this.#late.push(at - fireAt);
        return;
      }
      case "cancel.requested":
        folded.cancelRequestedAt ??= at;
        return;
      case "instance.completed":
      case "instance.failed":
      case "instance.cancelled":
      case "instance.terminated":
        folded.endedAt ??= at;
        for (const sessionId of [...this.#attachments.keys()]) this.#close(sessionId);
        return;
      default:
    }
  }

  #close(sessionId: string): void {
    const attachment = this.#attachments.get(sessionId);
    if (attachment !== undefined) this.#folded.closings.push({ sessionId, attachment });
    this.#attachments.delete(sessionId);
  }
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined; // The state stays as it was before this event.
  }
}
