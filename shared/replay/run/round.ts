/** One round of the code: its input (facts, values), its output (commands), and the operations it waits for. */
import type { HistoryEvent, NewEvent, Payload } from "../../../schemas/index.ts";
import type { WorkLog } from "../../definitions/index.ts";
import type { Scope } from "../handles/scope.ts";

/** A durable operation the code waits for. */
export interface Operation {
  readonly scope: Scope;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** The command that cancels the operation, if it can be cancelled. */
  readonly cancelCommand: (() => NewEvent) | undefined;
  /** Set on work of a session. */
  readonly sessionId?: string | undefined;
}

/** A command of the code, not yet recorded. */
export interface IssuedCommand {
  event: NewEvent;
  /** Size of its payload as JSON: a payload that is too big goes to the blob store before the commit. */
  payloadBytes: number;
}

/** What the history has for a round that is replayed. */
export interface Recorded {
  /** Those that the code has yet to issue. */
  readonly commands: HistoryEvent[];
  /** True if the engine ended the execution with this round, to begin the next one. */
  readonly continuedByEngine: boolean;
}

/**
 * A fact and the time at which it was recorded: the code sees deferred facts later, but its clock shows that
 * time.
 */
export interface Shown {
  readonly fact: HistoryEvent;
  readonly at: number;
}

/** The plain value behind each payload, fetched before the code runs. */
export type Values = (payload: Payload) => unknown;

/** Receives the code's own log lines. */
export interface Journal {
  /**
   * Names the processes that cannot read events of this generation yet; undefined if it may be written (E1).
   */
  heldBackBy?(generation: number): string | undefined;
  log(instanceId: string, level: keyof WorkLog, message: string, fields?: unknown): void;
}
