/**
 * What can be sent to an instance (`orchestrations.<instanceId>.<verb>`): one row for each verb. Subjects are built and
 * parsed by this table; a verb without a parser (`services/orchestrator/parse-inbox.ts`) does not compile.
 */
interface InboxVerbRow {
  /** What the token behind the verb names. Without it the verb is the end of the subject. */
  readonly names?: string;
  /** Any client may send it; the others are sent by workers, watchers, orchestrators and the server's schedules. */
  readonly byClients: boolean;
}

/** For each verb: the parts of its subject, its payload, and its senders. */
export const inboxVerbs = {
  start: { names: "orchestration name", byClients: true },
  signal: { names: "signal name", byClients: true },
  update: { names: "update name", byClients: true },
  cancel: { byClients: true },
  terminate: { byClients: true },
  activity: { byClients: false },
  child: { byClients: false },
  session: { byClients: false },
  wake: { byClients: false },
} as const satisfies Readonly<Record<string, InboxVerbRow>>;

type Verbs = typeof inboxVerbs;

/** A verb with the name behind it, where it takes one. */
export type InboxVerb = {
  [Kind in keyof Verbs]: Verbs[Kind] extends { names: string }
    ? { kind: Kind; name: string }
    : { kind: Kind };
}[keyof Verbs];

/** Verbs that are the end of their subject. */
export type PlainInboxVerb = Exclude<InboxVerb, { name: string }>["kind"];

/** Undefined if the token is no verb, or if its name is missing or superfluous. */
export function inboxVerb(verb: string, name: string | undefined): InboxVerb | undefined {
  if (!isVerb(verb)) return undefined;
  if (verb === "start" || verb === "signal" || verb === "update")
    return name === undefined ? undefined : { kind: verb, name };
  return name === undefined ? { kind: verb } : undefined;
}

/** Says what the token behind this verb names; undefined if the verb takes no name. */
export function namedBehind(verb: string): string | undefined {
  const row: InboxVerbRow | undefined = isVerb(verb) ? inboxVerbs[verb] : undefined;
  return row?.names;
}

/** The verbs a client may send, for error messages: `start.<name>, …, cancel`. */
export const verbsOfClients: string = Object.entries<InboxVerbRow>(inboxVerbs)
  .filter(([, { byClients }]) => byClients)
  .map(([verb, { names }]) => (names === undefined ? verb : `${verb}.<name>`))
  .join(", ");

const isVerb = (verb: string): verb is keyof Verbs => Object.hasOwn(inboxVerbs, verb);
