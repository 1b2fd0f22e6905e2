/**
 * C1: every report carries a capability that only an orchestrator could have made.
 *
 * A capability is a keyed hash (HMAC-SHA-256, 128 bits of it) over what its owner may report. The keys are
 * known to orchestrators alone. It travels with the task or the claim to the worker, which sends it back
 * with every report about that task or session. Workers derive weaker capabilities from it, each for one
 * purpose, and show those in places that other processes can read.
 *
 * The first letter says what the hash is over:
 *   q a task from a queue: instance, execution, task, attempt
 *   s a call of a session: instance, execution, task, attempt, epoch
 *   c a claim of a session: instance, session, attachment; the attachment follows the letter
 *   h the headers of a start that only the engine may set: instance, parent, follower, grants
 */
import { timingSafeEqual } from "node:crypto";
import { digestWith, MacKey } from "./mac.ts";

/** The only use of a derived capability. */
type Purpose = "beat" | "cancel" | "details" | "held" | "lost" | "stream";

/** Why a report is not believed. */
export type Doubt = "missing" | "wrong";

/** Names one attempt of a task. `epoch` for calls of a session, which are sent under it. */
interface TaskAddress {
  readonly instanceId: string;
  readonly execution: number;
  readonly of: number;
  readonly attempt: number;
  readonly epoch?: number | undefined;
}

/** Names one attachment of a session, and the instance that owns the session. */
export interface SessionAddress {
  readonly instanceId: string;
  readonly sessionId: string;
  readonly attachment: number;
}

/**
 * Headers of a start that only the engine may set: its parent, the instance that follows its end, and the
 * sessions it may use. A client that could set them could report for another instance's child and call its
 * sessions.
 */
interface StartBonds {
  readonly parent?: { instanceId: string; execution: number; of: number } | undefined;
  readonly follower?: { instanceId: string; signal: string } | undefined;
  readonly granted?: readonly { sessionId: string; owner: string }[] | undefined;
}

/** Makes and checks capabilities with the orchestrators' keys. */
export interface Capabilities {
  /** Undefined if this installation writes none. */
  ofTask(task: TaskAddress): string | undefined;
  /** The key of the heartbeat details of a task, the same for all its attempts. */
  ofDetails(task: Omit<TaskAddress, "attempt" | "epoch">): string | undefined;
  ofSession(session: SessionAddress): string | undefined;
  ofStart(instanceId: string, bonds: StartBonds): string | undefined;
  /** The same id for every orchestrator; no other process can guess it (SEC-2). */
  ofMessageId(messageId: string): string;
  /** Undefined if the report is to be believed. */
  doubtTask(task: TaskAddress, shown: string | undefined, purpose?: Purpose): Doubt | undefined;
  doubtSession(session: SessionAddress, shown: string | undefined, purpose?: Purpose): Doubt | undefined;
  doubtStart(instanceId: string, bonds: StartBonds, shown: string | undefined): Doubt | undefined;
}

/** For installations without keys: every client that can write to the server is believed. */
export const noCapabilities: Capabilities = {
  ofTask: () => undefined,
  ofDetails: () => undefined,
  ofSession: () => undefined,
  ofStart: () => undefined,
  ofMessageId: (messageId) => messageId,
  doubtTask: () => undefined,
  doubtSession: () => undefined,
  doubtStart: () => undefined,
};

interface KeyedCapabilitiesOptions {
  /** The first key makes new capabilities; those of all keys are believed. Read again for each use. */
  keys(): readonly MacKey[];
  /** Called when a capability fits no key, perhaps because there is a newer one. True: look again. */
  refresh?(): boolean;
  /** False while processes are alive that cannot read capabilities (E1): then none are written. */
  mayWrite(): boolean;
  /** True: a report without a capability is believed and counted. For the time of an upgrade. */
  acceptMissing: boolean;
  /** Called for a report without a capability that is believed. */
  onMissing?(): void;
}

const bytes = 16;
const length = Math.ceil((bytes * 4) / 3);

const macOf = (key: MacKey, text: string): string => key.digest(text).slice(0, length);
/** With a capability, or the key of heartbeat details, as the key. */
const macWith = (secret: string, text: string): string => digestWith(secret, text).slice(0, length);

export const capabilityKey = (text: string): MacKey => new MacKey(Buffer.from(text, "base64url"));

/** One-way: a process that sees the derived capability cannot compute the original. */
export const derivedCapability = (capability: string, purpose: Purpose): string => {
  const end = capability.length - length;
  return `${capability.slice(0, end)}${macWith(capability, purpose)}`;
};

/**
 * The key that signs a task's heartbeat details. Undefined if the task came without a capability: then the details are
 * written and read unchecked.
 */
export function detailsKey(task: {
  attempt: number;
  capability?: string | undefined;
  detailsKey?: string | undefined;
}): string | undefined {
  if (task.detailsKey !== undefined) return task.detailsKey;
  return task.attempt === 1 && task.capability?.startsWith("q")
    ? derivedCapability(task.capability, "details")
    : undefined;
}

export const detailsProof = (key: string, attempt: number, details: string): string =>
  macWith(key, `${attempt}.${details}`);

/** How many capabilities are remembered until they are shown: about 2 MB. */
const mostRemembered = 10_000;

export class KeyedCapabilities implements Capabilities {
  readonly #options: KeyedCapabilitiesOptions;
  /** Those of tasks that are out, by what they are made over: the usual report is compared, nothing is hashed. */
  readonly #made = new Map<string, string>();

  constructor(options: KeyedCapabilitiesOptions) {
    this.#options = options;
  }

  ofTask(task: TaskAddress): string | undefined {
    const key = this.#signing();
    if (key === undefined) return undefined;
    const said = saidOfTask(task);
    const capability = taskCapability(key, said);
    this.#made.set(said, capability);
    const [oldest] = this.#made.size > mostRemembered ? this.#made.keys() : [];
    if (oldest !== undefined) this.#made.delete(oldest);
    return capability;
  }

  ofDetails({ instanceId, execution, of }: Omit<TaskAddress, "attempt" | "epoch">): string | undefined {
    const key = this.#signing();
    const first = saidOfTask({ instanceId, execution, of, attempt: 1 });
    return key && derivedCapability(taskCapability(key, first), "details");
  }

  ofSession(session: SessionAddress): string | undefined {
    const key = this.#signing();
    return key && sessionCapability(key, session);
  }

  ofStart(instanceId: string, bonds: StartBonds): string | undefined {
    const key = hasNoBonds(bonds) ? undefined : this.#signing();
    return key && startCapability(key, instanceId, bonds);
  }

  ofMessageId(messageId: string): string {
    const [key] = this.#options.keys();
    return key ? `${messageId}-${macOf(key, `m.${messageId}`)}` : messageId;
  }

  doubtTask(task: TaskAddress, shown: string | undefined, purpose?: Purpose): Doubt | undefined {
    if (shown === undefined) return this.#missing();
    // A task of a queue has no epoch, even if the member of a pool that ran it reports its own.
    const said = saidOfTask(shown.startsWith("q") ? { ...task, epoch: undefined } : task);
    const made = purpose === undefined ? this.#made.get(said) : undefined;
    if (made !== undefined && isSame(made, shown)) {
      this.#made.delete(said);
      return undefined;
    }
    return this.#doubt(shown, (key) => taskCapability(key, said), purpose);
  }

  doubtSession(session: SessionAddress, shown: string | undefined, purpose?: Purpose): Doubt | undefined {
    if (shown === undefined) return this.#missing();
    const attachment = Number(/^c(\d+)\./.exec(shown)?.[1]);
    // A holder may attach again by itself, under the next attachment (S14).
    if (!(attachment <= session.attachment)) return "wrong";
    return this.#doubt(shown, (key) => sessionCapability(key, { ...session, attachment }), purpose);
  }

  doubtStart(instanceId: string, bonds: StartBonds, shown: string | undefined): Doubt | undefined {
    if (hasNoBonds(bonds)) return undefined;
    if (shown === undefined) return this.#missing();
    return this.#doubt(shown, (key) => startCapability(key, instanceId, bonds), undefined);
  }

  #signing(): MacKey | undefined {
    return this.#options.mayWrite() ? this.#options.keys()[0] : undefined;
  }

  #missing(): Doubt | undefined {
    if (!this.#options.acceptMissing) return "missing";
    this.#options.onMissing?.();
    return undefined;
  }

  #doubt(shown: string, make: (key: MacKey) => string, purpose: Purpose | undefined): Doubt | undefined {
    const fits = () =>
      this.#options.keys().some((key) => {
        const whole = make(key);
        return isSame(purpose === undefined ? whole : derivedCapability(whole, purpose), shown);
      });
    if (fits() || (this.#options.refresh?.() && fits())) return undefined;
    return "wrong";
  }
}

function isSame(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a, "latin1"), Buffer.from(b, "latin1"));
}

const saidOfTask = ({ instanceId, execution, of, attempt, epoch }: TaskAddress): string =>
  `${epoch === undefined ? "q" : "s"}.${instanceId}.${execution}.${of}.${attempt}.${epoch ?? 0}`;

const taskCapability = (key: MacKey, said: string): string => `${said[0]}${macOf(key, said)}`;

const sessionCapability = (key: MacKey, { instanceId, sessionId, attachment }: SessionAddress): string =>
  `c${attachment}.${macOf(key, `c.${instanceId}.${sessionId}.${attachment}`)}`;

const hasNoBonds = ({ parent, follower, granted = [] }: StartBonds): boolean =>
  parent === undefined && follower === undefined && granted.length === 0;

/** Hashes the meaning of the headers, not their text: a later version may add fields to them. */
function startCapability(key: MacKey, instanceId: string, { parent, follower, granted }: StartBonds): string {
  const said = [
    ["h", instanceId],
    parent ? [parent.instanceId, parent.execution, parent.of] : [],
    follower ? [follower.instanceId, follower.signal] : [],
    (granted ?? []).map(({ sessionId, owner }) => [sessionId, owner]),
  ];
  return `h${macOf(key, JSON.stringify(said))}`;
}
