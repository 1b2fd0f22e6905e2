import { createHash } from "node:crypto";
import { fits } from "../../schemas/fits.ts";
import { BlobRef, Commit, needsNewerVersion, whyNewer } from "../../schemas/index.ts";
import type { Bus, StoredMessage } from "../bus/index.ts";
import { headerNames, unknownKinds, utf8 } from "../bus/index.ts";
import { Fault } from "../errors/index.ts";

/** Room for headers and subject within the server's payload limit. */
const headroomBytes = 8 * 1024;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const nothing = new Uint8Array();

interface EncodedCommit {
  body: Uint8Array;
  /**
   * Set if the body was too big: it is then in the blob store, and must be written there before the message.
   */
  overflow?: { ref: BlobRef; bytes: Uint8Array };
}

export function encodeCommit(commit: Commit, maxPayloadBytes: number): EncodedCommit {
  const bytes = utf8(JSON.stringify(commit));
  if (bytes.length <= maxPayloadBytes - headroomBytes) return { body: bytes };
  const sha256 = digest(bytes);
  const ref = { key: `${commit.instanceId}/commit-${commit.commitId}`, bytes: bytes.length, sha256 };
  return { body: nothing, overflow: { ref, bytes } };
}

/** A commit that cannot be read parks its instance (T9): a newer version wrote it, or it was damaged. */
export async function decodeCommit(bus: Bus, instanceId: string, message: StoredMessage): Promise<Commit> {
  const ref = message.headers[headerNames.blob];
  const body = ref === undefined ? message.body : await fetchOverflow(bus, instanceId, message, ref);
  const value = parseJson(body);
  const parsed = fits(Commit, value) ? { success: true as const, data: value } : Commit.safeParse(value);
  const newer = whyNewer(parsed.success ? parsed.data.needs : needsOf(value));
  if (newer !== undefined) throw madeByNewer(instanceId, message, newer);
  if (!parsed.success) {
    const unknown = unknownKinds(parsed.error, value);
    if (unknown !== undefined)
      throw madeByNewer(instanceId, message, `needs a version that knows ${unknown}`);
    const issue = parsed.error.issues[0];
    throw unreadable(instanceId, message, `${issue?.path.join(".") || "(commit)"}: ${issue?.message}`);
  }
  if (parsed.data.instanceId !== instanceId) {
    throw unreadable(instanceId, message, `it belongs to instance ${parsed.data.instanceId}`);
  }
  return parsed.data;
}

async function fetchOverflow(
  bus: Bus,
  instanceId: string,
  message: StoredMessage,
  header: string,
): Promise<Uint8Array> {
  const ref = overflowRef(header);
  if (!ref) throw unreadable(instanceId, message, "its blob reference does not parse");
  const bytes = await bus.blobs.get(ref.key);
  if (!bytes) throw unreadable(instanceId, message, `blob ${ref.key} is missing`);
  if (digest(bytes) !== ref.sha256) throw unreadable(instanceId, message, `blob ${ref.key} is damaged`);
  return bytes;
}

export const overflowRef = (header: string): BlobRef | undefined =>
  BlobRef.safeParse(parseJson(encoder.encode(header))).data;

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body));
  } catch {
    return undefined; // The schema refuses it and reports the reason.
  }
}

const needsOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null && "needs" in value ? value.needs : undefined;

const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** E1: the commit is sound, and a newer process continues the instance. */
const madeByNewer = (instanceId: string, message: StoredMessage, why: string): Fault =>
  new Fault("bug", {
    code: needsNewerVersion,
    message: `history of ${instanceId}, message ${message.seq}: ${why}`,
    details: { instanceId, subject: message.subject, seq: message.seq },
  });

const unreadable = (instanceId: string, message: StoredMessage, why: string): Fault =>
  new Fault("bug", {
    code: "history_unreadable",
    message: `history of ${instanceId}, message ${message.seq}: ${why}`,
    details: { instanceId, subject: message.subject, seq: message.seq },
  });
