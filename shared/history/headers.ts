/** What stands beside a commit in its message, so that it can be found and told apart without being parsed. */
import type { StoredMessage } from "../bus/bus.ts";

export const headers = {
  /** Id of the commit: tells our own ambiguous append from somebody else's. */
  commit: "Holdfast-Commit",
  /** Sequence at which the commit's execution began. Absent: with this very message. */
  executionStart: "Holdfast-Execution-Start",
  /** The body is too big for a message and lies in the blob store; the value is its BlobRef. */
  blob: "Holdfast-Blob",
  /** Nothing may follow on this subject; see `Seal`. */
  sealed: "Holdfast-Sealed",
  /** On a seal: sequence of the last commit before it. */
  sealedLast: "Holdfast-Sealed-Last",
  /** On the first message of an archived history. What stands before it on the subject is not part of it. */
  archived: "Holdfast-Archived",
} as const;

/**
 * `archive`: the history is complete and is being copied to the shared stream; this stream is the truth until it is gone.
 * `moved`: the history lives in the shared stream; this one was made by somebody who came second.
 */
export type Seal = "archive" | "moved";

export function sealOf(message: StoredMessage): Seal | undefined {
  const seal = message.headers[headers.sealed];
  return seal === "archive" || seal === "moved" ? seal : undefined;
}

const number = (message: StoredMessage, name: string): number | undefined => {
  const value = message.headers[name];
  return value === undefined ? undefined : Number(value);
};

export const executionStartOf = (message: StoredMessage): number =>
  number(message, headers.executionStart) ?? message.seq;

/** Of the commit the message is, or of the commit before it where it is a seal. */
export const lastCommitSeqOf = (message: StoredMessage): number =>
  number(message, headers.sealedLast) ?? message.seq;

/** Drops seals, and whatever stands before the start of an archived copy. */
export function commitsOnly(messages: StoredMessage[]): StoredMessage[] {
  const start = messages.findLastIndex((message) => message.headers[headers.archived] !== undefined);
  return messages.slice(Math.max(0, start)).filter((message) => sealOf(message) === undefined);
}

/** Nothing of its history stands before it. A later execution begins with a message of its own, too. */
export const beginsHistory = (message: StoredMessage): boolean =>
  message.headers[headers.archived] !== undefined || message.headers[headers.executionStart] === undefined;
