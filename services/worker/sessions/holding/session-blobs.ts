/**
 * What code inside a session stores under names. The bytes go into the blob store under a key of their own;
 * which key a name has is part of the session's history, so the next holder finds what was stored before it.
 *
 * SBLOB-1 A put or delete is over when its report is stored in the instance's inbox: a loss recorded later
 *    comes after it. A report under an old epoch counts no more, and its bytes are deleted (S6).
 * SBLOB-2 A key is never written twice, so a holder that was cut off cannot change what its successor stored.
 *
 * What `init` changes is reported when the instance knows the holder; until then it counts for this holder
 * only.
 */
import {
  changedBlobs,
  type SessionBlob,
  type SessionClaim,
  sessionBlobsFolder,
} from "../../../../schemas/index.ts";
import type { BlobInfo } from "../../../../shared/definitions/index.ts";
import { HoldfastError, SessionLostError } from "../../../../shared/errors/index.ts";
import type { BlobRequest } from "../../hosts/index.ts";
import type { SessionServices } from "../session-services.ts";
import type { MayReport } from "./session-reporter.ts";

const mostNames = 64;
const nameRule = /^[A-Za-z0-9._-]{1,128}$/;

interface Change {
  name: string;
  stored: SessionBlob | undefined;
}

export class SessionBlobs {
  readonly #services: SessionServices;
  readonly #claim: SessionClaim;
  readonly #epoch: number;
  readonly #mayReport: MayReport;
  #blobs: readonly SessionBlob[];
  /** Changes made before the instance knew this holder; undefined once it does. */
  #early: Change[] | undefined;
  #changes = 0;
  /** One change at a time, in the order in which the code asked for them. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    services: SessionServices,
    claim: SessionClaim,
    epoch: number,
    mayReport: MayReport,
    /** The blobs of the previous attachment, if the same state goes on (S14). */
    before: SessionBlobs | undefined,
  ) {
    this.#services = services;
    this.#claim = claim;
    this.#epoch = epoch;
    this.#mayReport = mayReport;
    this.#blobs = before ? before.#blobs : (claim.blobs ?? []);
    this.#early = before ? [...(before.#early ?? [])] : [];
  }

  /** Answers the code of the session. Checked here, because programs in other languages have not. */
  async answer(request: BlobRequest): Promise<unknown> {
    switch (request.do) {
      case "list":
        return this.#blobs.map(infoOf);
      case "get":
        return this.#get(requireName(request.name));
      case "put": {
        const name = requireName(request.name);
        const bytes = requireBytes(name, request.data, this.#services.timing.maxBlobBytes);
        return this.#inTurn(() => this.#put(name, bytes));
      }
      case "delete": {
        const name = requireName(request.name);
        return this.#inTurn(() => this.#delete(name));
      }
    }
  }

  /** The instance knows this holder now. */
  ready(): void {
    void this.#inTurn(async () => {
      const early = this.#early ?? [];
      this.#early = undefined;
      for (const change of early) await this.#report(change);
    }).catch(() => undefined); // the right is over: the next holder begins without them
  }

  async #get(name: string): Promise<Uint8Array | undefined> {
    const blob = this.#find(name);
    if (!blob) return undefined;
    const bytes = await this.#services.deps.bus.blobs.get(blob.key);
    if (bytes) return bytes;
    throw new HoldfastError({
      code: "blob_missing",
      message: `blob ${name} of session ${this.#claim.sessionId} is no longer in the blob store`,
    });
  }

  async #put(name: string, bytes: Uint8Array): Promise<BlobInfo> {
    this.#requireRight();
    if (!this.#find(name) && this.#blobs.length >= mostNames)
      throw new HoldfastError({
        code: "invalid_blob",
        message: `session ${this.#claim.sessionId} has ${mostNames} blobs already: delete one first`,
      });
    const { blobs } = this.#services.deps.bus;
    const key = `${sessionBlobsFolder(this.#claim.sessionId)}${this.#epoch}-${++this.#changes}`;
    await blobs.put(key, bytes);
    const storedAt = this.#services.deps.runtime.clock.now();
    const stored = { name, key, bytes: bytes.byteLength, storedAt };
    await this.#record({ name, stored }).catch(async (error: unknown) => {
      await blobs.delete(key);
      throw error;
    });
    return infoOf(stored);
  }

  async #delete(name: string): Promise<boolean> {
    this.#requireRight();
    if (!this.#find(name)) return false;
    await this.#record({ name, stored: undefined });
    return true;
  }

  async #record(change: Change): Promise<void> {
    if (this.#early) this.#early.push(change);
    else await this.#report(change);
    this.#blobs = changedBlobs(this.#blobs, change.name, change.stored);
  }

  async #report({ name, stored }: Change): Promise<void> {
    const report = { kind: "blob" as const, epoch: this.#epoch, name, stored };
    const nth = ++this.#changes;
    const reported = await this.#services.reporter.session(this.#claim, report, this.#mayReport, nth);
    if (!reported) throw this.#lost();
  }

  #requireRight(): void {
    if (!this.#mayReport()) throw this.#lost();
    if (this.#services.deps.generation.allows(2)) return;
    throw new HoldfastError({
      code: "needs_newer_fleet",
      message: "blobs of a session cannot be changed while an older version is alive",
    });
  }

  #lost(): SessionLostError {
    return new SessionLostError({
      sessionId: this.#claim.sessionId,
      epoch: this.#epoch,
      workerId: this.#services.deps.identity.workerId,
      reason: "expired",
    });
  }

  #find(name: string): SessionBlob | undefined {
    return this.#blobs.find((blob) => blob.name === name);
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#last.then(act);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

const infoOf = ({ name, bytes, storedAt }: SessionBlob): BlobInfo => ({ name, bytes, storedAt });

function requireName(name: unknown): string {
  if (typeof name === "string" && nameRule.test(name)) return name;
  throw refused(`the name must have 1 to 128 characters of A-Z a-z 0-9 . _ -, not ${JSON.stringify(name)}`);
}

/** A copy: the code may go on writing to its own. */
function requireBytes(name: string, data: unknown, most: number): Uint8Array {
  if (!(data instanceof Uint8Array)) throw refused(`${name} must be bytes (a Uint8Array)`);
  if (data.byteLength > most)
    throw refused(`${name} has ${data.byteLength} bytes, more than the limit of ${most}`);
  return data.slice();
}

const refused = (why: string): HoldfastError =>
  new HoldfastError({ code: "invalid_blob", message: `blob of a session: ${why}` });
