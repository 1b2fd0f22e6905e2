/**
 * Short builders for the messages that workers, watchers, parents, children and clients send to an instance.
 */
import {
  type ActivityReport,
  Attachment,
  CheckpointRef,
  type Failure,
  InstanceId,
  type LossReason,
  type MetadataChange,
  Payload,
  SessionId,
  SessionReport,
  type SessionState,
  WorkerId,
} from "../../../schemas/index.ts";
import type { InboxMessage } from "../../replay/index.ts";

export const json = (value?: unknown): Payload => Payload.parse({ json: value });

export const start = (
  name: string,
  input?: unknown,
  more: Partial<Extract<InboxMessage, { kind: "start" }>> = {},
): InboxMessage => ({ kind: "start", name, input: json(input), ...more });

export const signal = (name: string, payload?: unknown): InboxMessage => ({
  kind: "signal",
  name,
  payload: json(payload),
});

export const update = (name: string, payload?: unknown, updateId = name): InboxMessage => ({
  kind: "update",
  name,
  updateId,
  payload: json(payload),
});

export const cancel = (reason?: string): InboxMessage => ({ kind: "cancel", reason });
export const terminate = (reason?: string): InboxMessage => ({ kind: "terminate", reason });
export const wake = (): InboxMessage => ({ kind: "wake", wake: undefined });

/** For messages whose sender does not matter, or is the holder of the session under that epoch. */
export const anyWorker = "w1";

interface About {
  execution?: number;
  attempt?: number;
  epoch?: number;
  worker?: string;
}

const report = (of: number, about: About, result: ActivityReport["result"]): InboxMessage => ({
  kind: "activity",
  report: {
    v: 1,
    execution: about.execution ?? 1,
    of,
    attempt: about.attempt ?? 1,
    workerId: WorkerId.parse(about.worker ?? anyWorker),
    epoch: about.epoch,
    result,
  },
});

/** An error of the user's own. */
const failure = (code: string, message: string, retryable: boolean): Failure => ({
  code,
  message,
  retryable,
});

export const completed = (of: number, output?: unknown, about: About = {}): InboxMessage =>
  report(of, about, { kind: "completed", output: json(output) });

export const failed = (of: number, error: Partial<Failure> = {}, about: About = {}): InboxMessage =>
  report(of, about, {
    kind: "failed",
    error: { ...failure("oops", "it went wrong", true), ...error },
  });

export const began = (of: number, about: About = {}): InboxMessage => report(of, about, { kind: "started" });

export const stateMissing = (of: number, about: About = {}): InboxMessage =>
  report(of, about, { kind: "state_missing", message: "no state here" });

export const childDone = (of: number, output?: unknown, execution = 1): InboxMessage => ({
  kind: "child",
  report: { v: 1, execution, of, result: { kind: "completed", output: json(output) } },
});

export const childFailed = (of: number, error: Partial<Failure> = {}): InboxMessage => ({
  kind: "child",
  report: {
    v: 1,
    execution: 1,
    of,
    result: { kind: "failed", error: { ...failure("sad", "child failed", false), ...error } },
  },
});

/** One attachment of a session: number, epoch and holder. */
export const held = (attachment: number, epoch = attachment * 10, worker = `w${attachment}`): Attachment =>
  Attachment.parse({
    attachment,
    epoch,
    workerId: worker,
    nodeId: `node-${worker}`,
    host: "localhost",
    resourceId: `resource-${worker}`,
  });

const session = (sessionId: string, attachment: number, about: SessionReport["report"]): InboxMessage => ({
  kind: "session",
  report: SessionReport.parse({ v: 1, sessionId: SessionId.parse(sessionId), attachment, report: about }),
});

export const claimed = (id: string, on: Attachment): InboxMessage =>
  session(id, on.attachment, { kind: "claimed", on });

export const activated = (
  id: string,
  on: Attachment,
  { warm = false, restored = false } = {},
): InboxMessage => session(id, on.attachment, { kind: "activated", on, initMs: 5, warm, restored });

export const initFailed = (id: string, attachment: number, message = "no memory"): InboxMessage =>
  session(id, attachment, { kind: "init_failed", error: { code: "Error", message, retryable: true } });

export const lost = (
  id: string,
  on: Pick<Attachment, "attachment"> & { epoch?: number },
  reason: LossReason = "expired",
  detail?: string,
  /** Calls of instance `i1` that had begun, if the holder reports them. */
  running?: { of: number; attempt: number }[],
): InboxMessage =>
  session(id, on.attachment, {
    ...{ kind: "lost", epoch: on.epoch, reason, detail },
    ...(running && {
      running: running.map((one) => ({ instanceId: InstanceId.parse("i1"), execution: 1, ...one })),
    }),
  });

/** The session id had attachments before: those up to `upTo` cannot be claimed any more. */
export const spent = (id: string, attachment: number, upTo: number): InboxMessage =>
  session(id, attachment, { kind: "spent", upTo });

export const parked = (id: string, on: Attachment): InboxMessage =>
  session(id, on.attachment, { kind: "parked", epoch: on.epoch });

export const checkpoint = (epoch: number, calls = 1): CheckpointRef =>
  CheckpointRef.parse({ key: `checkpoint-${epoch}-${calls}`, bytes: 3, epoch, calls });

export const checkpointed = (id: string, on: Attachment, calls = 1): InboxMessage =>
  session(id, on.attachment, { kind: "checkpointed", checkpoint: checkpoint(on.epoch, calls) });

/** Code inside the session changed its metadata. */
export const noted = (id: string, on: Attachment, change: MetadataChange): InboxMessage =>
  session(id, on.attachment, { kind: "metadata", epoch: on.epoch, change });

/** Code inside the session stored bytes under a name, or deleted the name. */
export const blobChanged = (
  id: string,
  on: Attachment,
  name: string,
  key: string | undefined,
): InboxMessage =>
  session(id, on.attachment, {
    kind: "blob",
    epoch: on.epoch,
    name,
    ...(key !== undefined && { stored: { name, key, bytes: 1, storedAt: 1 } }),
  });

export const wanted = (id: string, attachment = 1): InboxMessage =>
  session(id, attachment, { kind: "wanted" });

export const closedByOwner = (id: string, attachment = 1): InboxMessage =>
  session(id, attachment, { kind: "closed" });

export const refused = (id: string, attachment: number, error: Partial<Failure> = {}): InboxMessage =>
  session(id, attachment, {
    kind: "refused",
    error: { code: "session_id_taken", message: "belongs to another", retryable: false, ...error },
  });

/** The message by which the lender of an exclusive pool lends a member to a borrower. */
export const lent = (member: SessionState): InboxMessage =>
  session(member.sessionId, Math.max(1, member.attachments), { kind: "lent", session: member });

/** Starts a child that may use these sessions of its parent. */
export const startGranted = (name: string, granted: SessionState[], input?: unknown): InboxMessage =>
  start(name, input, { granted });
