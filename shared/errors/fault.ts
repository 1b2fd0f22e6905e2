/**
 * The one class for faults inside the engine. Outcomes (`fenced`, `refused`, a lost lease) are returned,
 * never thrown; a thrown fault has a kind, and the kind alone decides what is done about it.
 */
export type FaultKind =
  /** User code failed: recorded in history. */
  | "application"
  /** May work next time: retried with backoff. */
  | "transient"
  /** A message or a caller broke the contract: dead-lettered or answered with the code. */
  | "contract"
  /** Code and history disagree: the instance is parked (T6). */
  | "nondeterminism"
  /** The installation is wrong: the process says so in one line and exits. */
  | "config"
  /** A bug of the engine. */
  | "bug";

interface FaultInit {
  /** Stable and machine-readable, snake_case. */
  code: string;
  message: string;
  /** What to do about it, one sentence. */
  hint?: string;
  details?: unknown;
  cause?: unknown;
}

export class Fault extends Error {
  override readonly name = "Fault";
  readonly kind: FaultKind;
  readonly code: string;
  readonly hint: string | undefined;
  readonly details: unknown;

  constructor(kind: FaultKind, init: FaultInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.kind = kind;
    this.code = init.code;
    this.hint = init.hint;
    this.details = init.details;
  }
}

export function isFault(error: unknown, kind?: FaultKind): error is Fault {
  try {
    return error instanceof Fault && (kind === undefined || error.kind === kind);
  } catch {
    return false; // a proxy that throws when read: not an error of this package
  }
}
