/**
 * Every event kind in one table: its role, its identity in the determinism check, and its payloads. A kind
 * without a row does not compile, and neither does a kind that `shared/replay/fold/apply.ts` does not apply.
 */
import type { EventKind, HistoryEvent, NewEvent, TaskTarget } from "./events.ts";
import type { Payload } from "./payload.ts";

/** Moves a payload to the blob store and returns the reference to it. */
export type MoveAway = (payload: Payload) => Promise<Payload>;

interface AnyRole<E> {
  /** Payloads that the code reads: they are fetched before the code runs. */
  shows?(event: E): Payload[];
  /** The same event with its payloads moved to the blob store, because they are too large for a commit. */
  moved?(event: E, away: MoveAway): Promise<E>;
}

/** Issued by the code, and issued again by it on every replay. */
interface CommandKind<E> extends AnyRole<E> {
  role: "command";
  /**
   * Identifies the command, as text for messages. Two commands are the same if these texts are equal: inputs
   * and durations may change between deployments, the operation and its target may not (T6).
   */
  identity(event: E): string;
  /** More detail for messages; the comparison ignores it. */
  detail?(event: E): string;
}

/** `fact`: happened outside the code. `engine`: decided by the engine because of other events. */
interface OtherKind<E> extends AnyRole<E> {
  role: "fact" | "engine";
}

type KindRow<E> = CommandKind<E> | OtherKind<E>;

const ofEvent = (event: { kind: string; of: number }): string => `${event.kind} of event ${event.of}`;
const answerTo = ({ of }: { of: number }): string => `the answer to the update of event ${of}`;
const input = async <E extends { input: Payload }>(event: E, away: MoveAway): Promise<E> => ({
  ...event,
  input: await away(event.input),
});

const eventKinds: { readonly [K in EventKind]: KindRow<NewEvent<K>> } = {
  "instance.started": {
    role: "fact",
    shows: ({ input, carried }) => [
      input,
      ...(carried?.state ? [carried.state] : []),
      ...(carried?.signals.map(({ payload }) => payload) ?? []),
    ],
  },
  "instance.completed": {
    role: "command",
    identity: () => "completion",
    moved: async (event, away) => ({ ...event, output: await away(event.output) }),
  },
  "instance.failed": {
    role: "command",
    identity: () => "failure",
    detail: ({ error }) => ` (${error.code}: ${error.message.slice(0, 300)})`,
  },
  "instance.cancelled": { role: "command", identity: () => "cancellation" },
  "instance.terminated": { role: "fact" },
  "instance.continued": {
    role: "command",
    identity: () => "continue-as-new",
    moved: async (event, away) => {
      const { input, state } = event;
      return { ...event, input: await away(input), ...(state && { state: await away(state) }) };
    },
  },

  "activity.scheduled": {
    role: "command",
    identity: ({ name, target }) =>
      `${target.kind === "session" && target.call ? "call" : "activity"} "${name}" ${placeOf(target)}`,
    moved: input,
  },
  "activity.started": { role: "fact" },
  "activity.attempt_failed": { role: "fact" },
  "activity.completed": { role: "fact", shows: ({ output }) => [output] },
  "activity.failed": { role: "fact" },
  "activity.cancelled": { role: "command", identity: ofEvent },

  "timer.created": { role: "command", identity: () => "a timer" },
  "timer.fired": { role: "fact" },
  "timer.cancelled": { role: "command", identity: ofEvent },

  "signal.received": { role: "fact", shows: ({ payload }) => [payload] },
  "cancel.requested": { role: "fact" },

  "child.scheduled": {
    role: "command",
    identity: ({ mode, name, childId }) => `${mode} child "${name}" as "${childId}"`,
    moved: input,
  },
  "child.completed": { role: "fact", shows: ({ output }) => [output] },
  "child.failed": { role: "fact" },
  "child.cancelled": { role: "command", identity: ofEvent },
  "end.requested": { role: "command", identity: ({ verb, to }) => `${verb} of instance "${to}"` },

  "side_effect.recorded": {
    role: "command",
    identity: () => "a side effect",
    shows: ({ value }) => [value],
    moved: async (event, away) => ({ ...event, value: await away(event.value) }),
  },
  "update.accepted": { role: "fact", shows: ({ input }) => [input] },
  "update.completed": {
    role: "command",
    identity: answerTo,
    moved: async (event, away) => ({ ...event, answer: await away(event.answer) }),
  },
  "update.failed": { role: "command", identity: answerTo },
  "patch.marked": { role: "command", identity: ({ patch }) => `patch "${patch}"` },
  "status.set": {
    role: "command",
    identity: () => "a status",
    moved: async (event, away) => ({ ...event, status: await away(event.status) }),
  },

  "pool.joined": { role: "command", identity: ({ poolId }) => `pool.joined "${poolId}"` },
  "pool.lent": { role: "fact" },
  "pool.left": { role: "command", identity: ({ poolId }) => `pool.left "${poolId}"` },

  "session.opened": {
    role: "command",
    identity: ({ sessionId, type }) => `session "${sessionId}" of type "${type}"`,
    moved: async (event, away) => {
      const { config, options } = event;
      const { rebuild } = options;
      return {
        ...event,
        config: config && (await away(config)),
        options: rebuild
          ? { ...options, rebuild: { ...rebuild, input: await away(rebuild.input) } }
          : options,
      };
    },
  },
  "session.requested": { role: "engine" },
  "session.claimed": { role: "fact" },
  "session.activated": { role: "fact" },
  "session.init_failed": { role: "fact" },
  "session.failed": { role: "fact" },
  "session.lost": { role: "fact" },
  "session.parked": { role: "fact" },
  "session.checkpointed": { role: "fact" },
  "session.metadata_set": {
    role: "command",
    identity: ({ sessionId }) => `metadata of session "${sessionId}"`,
  },
  "session.metadata_reported": { role: "fact" },
  "session.blob_changed": { role: "fact" },
  "session.closed": { role: "command", identity: ({ sessionId }) => `close of session "${sessionId}"` },
  "session.lent": { role: "command", identity: ({ sessionId }) => `session.lent "${sessionId}"` },
  "session.returned": { role: "command", identity: ({ sessionId }) => `session.returned "${sessionId}"` },
};

function placeOf(target: TaskTarget): string {
  switch (target.kind) {
    case "queue":
      return `on queue "${target.queue}"`;
    case "session":
      return `on session "${target.sessionId}"`;
    case "local":
      return "run locally";
  }
}

/** Looks up the row of an event by its kind. The row accepts that event. */
const rowOf = (kind: EventKind): KindRow<NewEvent> => eventKinds[kind];

const endings: ReadonlySet<EventKind> = new Set([
  "instance.completed",
  "instance.failed",
  "instance.cancelled",
  "instance.terminated",
]);

/** True for an event that ends its instance. */
export const endsInstance = ({ kind }: { readonly kind: EventKind }): boolean => endings.has(kind);

/** True if the code is expected to issue this event again on replay. */
export const isCommand = (event: HistoryEvent): boolean =>
  rowOf(event.kind).role === "command" && !("by" in event && event.by === "engine");

const identityOf = (command: NewEvent): string => {
  const row = rowOf(command.kind);
  return row.role === "command" ? row.identity(command) : command.kind;
};

/** Describes a command in messages. */
export function describeCommand(command: NewEvent): string {
  const row = rowOf(command.kind);
  const detail = row.role === "command" ? row.detail?.(command) : undefined;
  return `${identityOf(command)}${detail ?? ""}`;
}

/** True if the code issued another command than the one recorded (T6). */
export const commandsDiffer = (recorded: NewEvent, issued: NewEvent): boolean =>
  identityOf(recorded) !== identityOf(issued);

/** The payloads of an event that the code reads. */
export const payloadsOf = (event: HistoryEvent): Payload[] => rowOf(event.kind).shows?.(event) ?? [];

/** The command with its payloads in the blob store. */
export const moveAway = async (event: NewEvent, away: MoveAway): Promise<NewEvent> =>
  (await rowOf(event.kind).moved?.(event, away)) ?? event;
