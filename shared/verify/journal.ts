/**
 * The journal that users keep during a run: one JSON object per line. The checker trusts it and compares the
 * streams with it.
 */
import { z } from "zod";
import { parseJson } from "../bus/index.ts";

const at = z.number().optional();

/** A writer adds a line once it knows the fact: after an acknowledgement, or as the first act of the code. */
export const JournalEntry = z.discriminatedUnion("kind", [
  /** A start was acknowledged. `ends`: the instance is known to end by itself. */
  z.object({ kind: z.literal("started"), instanceId: z.string(), ends: z.boolean().optional(), at }),
  /** A signal was acknowledged. Signals of one sender to one instance are in order. */
  z.object({
    kind: z.literal("signalled"),
    instanceId: z.string(),
    name: z.string(),
    sender: z.string().optional(),
    messageId: z.string().optional(),
    value: z.unknown().optional(),
    at,
  }),
  /** An update was answered. */
  z.object({
    kind: z.literal("updated"),
    instanceId: z.string(),
    updateId: z.string(),
    answer: z.unknown().optional(),
    at,
  }),
  /** A client saw the end of an instance. */
  z.object({
    kind: z.literal("ended"),
    instanceId: z.string(),
    status: z.enum(["completed", "failed", "cancelled", "terminated"]),
    output: z.unknown().optional(),
    at,
  }),
  /** A call of a session began to run. `of`: its number, growing as the code of its execution asks for calls. */
  z.object({
    kind: z.literal("call"),
    sessionId: z.string(),
    epoch: z.int(),
    instanceId: z.string(),
    execution: z.int().default(1),
    of: z.int(),
    attempt: z.int(),
    /** False for calls of a shared pool: no order is promised between them. */
    ordered: z.boolean().optional(),
    at,
  }),
  /** The shutdown of an attachment began to run. */
  z.object({ kind: z.literal("shutdown"), sessionId: z.string(), epoch: z.int(), at }),
]);
export type JournalEntry = z.infer<typeof JournalEntry>;

/** Throws an error that says what is wrong with the line; the caller adds the line number. */
export function readJournalLine(line: string): JournalEntry | undefined {
  if (line.trim() === "") return undefined;
  const parsed = parseJson(new TextEncoder().encode(line));
  if (parsed.kind === "invalid") throw new Error(parsed.message);
  const entry = JournalEntry.safeParse(parsed.value);
  if (entry.success) return entry.data;
  const issue = entry.error.issues[0];
  throw new Error(`${issue?.path.join(".") || "(line)"}: ${issue?.message}`);
}

type EntryOf<K extends JournalEntry["kind"]> = Extract<JournalEntry, { kind: K }>;

/** The journal in memory, by instance and by attachment. */
export class Journal {
  readonly started = new Map<string, EntryOf<"started">>();
  readonly ended = new Map<string, EntryOf<"ended">>();
  readonly signals = new Map<string, EntryOf<"signalled">[]>();
  readonly updates = new Map<string, EntryOf<"updated">[]>();
  readonly calls = new Map<string, EntryOf<"call">[]>();
  readonly shutdowns = new Map<string, EntryOf<"shutdown">[]>();

  constructor(entries: Iterable<JournalEntry>) {
    for (const entry of entries) this.#add(entry);
  }

  get instanceIds(): Set<string> {
    return new Set([
      ...this.started.keys(),
      ...this.ended.keys(),
      ...this.signals.keys(),
      ...this.updates.keys(),
    ]);
  }

  #add(entry: JournalEntry): void {
    switch (entry.kind) {
      case "started":
        return void this.started.set(entry.instanceId, entry);
      case "ended":
        return void this.ended.set(entry.instanceId, entry);
      case "signalled":
        return push(this.signals, entry.instanceId, entry);
      case "updated":
        return push(this.updates, entry.instanceId, entry);
      case "call":
        return push(this.calls, `${entry.sessionId}.${entry.epoch}`, entry);
      case "shutdown":
        return push(this.shutdowns, `${entry.sessionId}.${entry.epoch}`, entry);
    }
  }
}

function push<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
