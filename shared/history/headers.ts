/** The headers of a commit's message, by which a commit is found and recognised without parsing its body. */
import { headerNames, type StoredMessage } from "../bus/index.ts";

/**
 * `archive`: the history is complete and is being copied to the shared stream; this stream is the truth until
 * it is deleted.
 * `moved`: the history is in the shared stream; a second owner made this stream too late.
 * `own`: in the shared stream: the history continues in the instance's own stream.
 */
export type Seal = "archive" | "moved" | "own";

export function sealOf(message: StoredMessage): Seal | undefined {
  const seal = message.headers[headerNames.sealed];
  return seal === "archive" || seal === "moved" || seal === "own" ? seal : undefined;
}

/** True for a commit that was copied into an own stream: it counts once the shared stream is sealed (HISTORY-5). */
export const isCopy = (message: StoredMessage): boolean => message.headers[headerNames.copied] !== undefined;

const number = (message: StoredMessage, name: string): number | undefined => {
  const value = message.headers[name];
  return value === undefined ? undefined : Number(value);
};

export const executionStartOf = (message: StoredMessage): number =>
  number(message, headerNames.executionStart) ?? message.seq;

/** Sequence of the commit in this message, or, if the message is a seal, of the commit before it. */
export const lastCommitSeqOf = (message: StoredMessage): number =>
  number(message, headerNames.sealedLast) ?? message.seq;

/** Drops seals, and all messages before the start of an archived copy. */
export function commitsOnly(messages: StoredMessage[]): StoredMessage[] {
  const start = messages.findLastIndex((message) => message.headers[headerNames.archived] !== undefined);
  return messages.slice(Math.max(0, start)).filter((message) => sealOf(message) === undefined);
}

/**
 * True if the message is the first of its history. A later execution also begins with a message of its own.
 */
export const beginsHistory = (message: StoredMessage): boolean =>
  message.headers[headerNames.archived] !== undefined ||
  message.headers[headerNames.executionStart] === undefined;
