import type { Attachment as Holder, SessionClaim } from "../../../../schemas/index.ts";
import type { SessionView } from "../../../../shared/definitions/index.ts";
import { askForBlobs } from "../../hosts/index.ts";
import type { MetadataReporter } from "./metadata-reporter.ts";
import type { SessionBlobs } from "./session-blobs.ts";
import type { SessionEnding } from "./session-ending.ts";

/** The part of an attachment that the view needs. */
interface Viewed {
  readonly noted: MetadataReporter;
  readonly blobs: SessionBlobs;
  end(ending: SessionEnding): Promise<void>;
}

/**
 * `ctx.session` of activities that run on a session. A class, because each of thousands of idle sessions keeps
 * one: an object with accessors of its own takes a kilobyte.
 */
export class HeldSessionView implements SessionView {
  readonly id: string;
  readonly type: string;
  readonly epoch: number;
  readonly attachment: number;
  readonly workerId: string;
  readonly host: string;
  readonly resourceId: string;
  readonly #of: Viewed;
  #blobs: SessionView["blobs"] | undefined;

  constructor({ sessionId, type }: SessionClaim, on: Holder, of: Viewed) {
    this.id = sessionId;
    this.type = type;
    this.epoch = on.epoch;
    this.attachment = on.attachment;
    this.workerId = on.workerId;
    this.host = on.host;
    this.resourceId = on.resourceId;
    this.#of = of;
  }

  get metadata(): SessionView["metadata"] {
    return this.#of.noted.metadata;
  }

  get blobs(): SessionView["blobs"] {
    this.#blobs ??= askForBlobs((request) => this.#of.blobs.answer(request));
    return this.#blobs;
  }

  get events(): SessionView["events"] {
    return noEvents;
  }

  setMetadata = (change: Readonly<Record<string, string | null>>): void => this.#of.noted.change(change);

  abort = (reason: string): void =>
    void this.#of.end({ kind: "given_up", reason: "aborted", detail: reason });
}

const noEvents: SessionView["events"] = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
};
