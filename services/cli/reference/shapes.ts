/** The output of `--json` and `--jsonl`, by command. Documented in docs/cli.md, checked by tests. */
import { z } from "zod";
import {
  Commit,
  Failure,
  HistoryEvent,
  InstanceSummary,
  ServiceInfo,
  SessionRecord,
  WorkerInfo,
} from "../../../schemas/index.ts";
import { DeadLetterView, poolShape, ScheduleView } from "../../../shared/sdk/internal.ts";

export interface Shape {
  /** The one line of `--json`. Undefined: `line`, once per item. */
  json?: z.ZodType;
  /** Each line of `--jsonl`. Undefined: the one line of `--json`. */
  line?: z.ZodType;
  note?: string;
}

const value = z.unknown().optional();

export const Done = z.strictObject({ ok: z.literal(true) });

export const Instance = InstanceSummary.omit({ v: true }).extend({
  input: value,
  output: value,
  customStatus: value,
});

const Violation = z.strictObject({
  law: z.string(),
  instanceId: z.string().optional(),
  evidence: z.string(),
  means: z.string(),
});

const Entry = z.intersection(z.object({ execution: z.int(), at: z.number() }), HistoryEvent);

const StreamItem = z.strictObject({
  offset: z.int(),
  execution: z.int(),
  of: z.int(),
  attempt: z.int(),
  run: z.int(),
  index: z.int(),
  at: z.number(),
  chunk: value,
});

const LiveSession = WorkerInfo.shape.sessions.element;

const Lease = z.object({
  kind: z.enum(["none", "held", "expired", "released"]),
  revision: z.int().optional(),
  at: z.number().optional(),
  holder: z.string().optional(),
  claimId: z.string().optional(),
});

const SessionDescription = z.strictObject({
  record: SessionRecord,
  live: LiveSession.optional(),
  lease: Lease,
  figures: z.strictObject({
    ageMs: z.number(),
    idleMs: z.number().optional(),
    calls: z.int().optional(),
    errors: z.int().optional(),
    running: z.int().optional(),
    queued: z.int().optional(),
    memory: z.strictObject({ of: z.enum(["host", "worker"]), bytes: z.number() }).optional(),
    modelLoads: z.int().optional(),
    inits: z.int(),
    rebuilds: z.int(),
    blobs: z.int(),
    blobBytes: z.int(),
    owners: SessionRecord.shape.owners,
  }),
  explanation: z.array(z.string()),
});

const Explanation = z.strictObject({
  sessionId: z.string(),
  phase: SessionRecord.shape.phase,
  explanation: z.array(z.string()),
});

export const Finding = z.strictObject({
  code: z.string(),
  what: z.string(),
  verdict: z.enum(["good", "note", "wrong"]),
  found: z.string(),
  todo: z.string().optional(),
});

const Used = z.strictObject({ used: z.int(), max: z.int() });

export const TopSample = z.strictObject({
  at: z.number(),
  instances: z.record(InstanceSummary.shape.status, z.int()),
  perSecond: z.strictObject({ started: z.number(), completed: z.number(), failed: z.number() }),
  lostPerMinute: z.int(),
  services: z.record(ServiceInfo.shape.service, z.int()),
  queues: z.array(z.strictObject({ name: z.string(), waiting: z.int(), running: z.int() })),
  deadLetters: z.int(),
  workers: z.array(
    z.strictObject({
      workerId: z.string(),
      host: z.string(),
      draining: z.boolean(),
      activities: Used,
      sessions: Used,
      calls: Used,
      rssBytes: z.number(),
      eventLoopDelayMs: z.number(),
      seenAt: z.number(),
    }),
  ),
  sessions: z.array(
    z.strictObject({
      sessionId: z.string(),
      type: z.string(),
      phase: SessionRecord.shape.phase,
      instanceId: z.string(),
      workerId: z.string().optional(),
      epoch: z.int().optional(),
      calls: z.int().optional(),
      running: z.int().optional(),
      queued: z.int().optional(),
      since: z.number(),
    }),
  ),
});

const Replayed = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("agrees"),
    instanceId: z.string(),
    executions: z.int(),
    events: z.int(),
  }),
  z.strictObject({
    kind: z.literal("disagrees"),
    instanceId: z.string(),
    execution: z.int(),
    event: z.int().optional(),
    code: z.string(),
    message: z.string(),
    hint: z.string().optional(),
  }),
]);

const Ready = z.object({
  ready: z.literal(true),
  natsUrl: z.string(),
  dashboard: z.string().optional(),
  pids: z.object({
    nats: z.int().optional(),
    orchestrator: z.int(),
    watcher: z.int(),
    workers: z.array(z.int()),
    gateway: z.int().optional(),
  }),
});

const SavedContext = z.strictObject({
  name: z.string(),
  current: z.boolean(),
  natsUrl: z.string(),
  creds: z.string().optional(),
  prefix: z.string().optional(),
});

const list = (line: z.ZodType): Shape => ({ json: z.array(line), line });

/** By the command's path, as typed. A test fails if a command that takes `--json` is missing here. */
export const shapes: Readonly<Record<string, Shape>> = {
  init: { json: z.strictObject({ folder: z.string(), files: z.array(z.string()) }) },
  dev: { json: Ready, note: "When ready; with `--demo --once` a second line has what the demo returned." },
  start: {
    json: z.strictObject({ instanceId: z.string() }),
    note: "With `--wait` the instance, as `result` prints it.",
  },
  "start-again": {
    ...list(z.strictObject({ of: z.string(), instanceId: z.string() })),
    note: "`of`: the instance whose input it has.",
  },
  get: { json: Instance },
  list: { ...list(Instance), note: "Values too big for a message are left out." },
  history: { json: z.array(Entry), line: Entry, note: "`--export` prints the file that `replay` reads." },
  result: { json: Instance, note: "Whatever the end was; also when it was not in time." },
  stream: { line: StreamItem },
  signal: { json: Done },
  update: {
    json: z.strictObject({ updateId: z.string(), answer: z.unknown() }),
    note: "With `--no-wait` only the id.",
  },
  query: { json: z.unknown(), note: "What the code answers." },
  cancel: { json: Done },
  terminate: { json: Done },
  watch: {
    line: z.intersection(z.object({ instanceId: z.string() }), Entry),
    note: "A line for each event, those of children included.",
  },
  replay: { json: Replayed },
  "record-test": { json: z.strictObject({ files: z.array(z.string()) }) },
  "sessions list": list(SessionRecord),
  "sessions describe": { json: SessionDescription },
  "sessions explain": { json: Explanation },
  "sessions blobs": list(z.strictObject({ name: z.string(), bytes: z.int(), storedAt: z.number() })),
  "sessions blob": { json: Done },
  "sessions call": {
    json: z.unknown(),
    note: "What the call returns; with `--stream` a line for each chunk before it.",
  },
  "sessions close": { json: Done },
  "sessions evict": { json: Done },
  "sessions drain": { json: Done },
  "pools list": list(poolShape),
  "pools resize": { json: Done },
  "pools pause": { json: Done },
  "pools resume": { json: Done },
  "pools forget": { json: Done },
  "schedule create": { json: Done },
  "schedule list": list(ScheduleView),
  "schedule show": { json: ScheduleView },
  "schedule pause": { json: Done },
  "schedule resume": { json: Done },
  "schedule trigger": { json: z.object({ instanceId: z.string() }) },
  "schedule backfill": { json: Done },
  "schedule delete": { json: Done },
  "workers list": list(WorkerInfo),
  "workers describe": { json: WorkerInfo },
  "workers drain": { json: Done },
  "dead list": list(DeadLetterView),
  "dead show": { json: DeadLetterView },
  "dead retry": { line: z.strictObject({ seq: z.int(), subject: z.string() }) },
  "dead discard": { json: Done },
  top: { line: TopSample },
  verify: {
    json: z.strictObject({
      ok: z.boolean(),
      violations: z.array(Violation),
      counts: z.record(z.string(), z.int()),
      notes: z.array(z.string()),
      read: z.record(z.string(), z.int()),
      spreads: z.record(
        z.string(),
        z.strictObject({ count: z.int(), p50: z.number(), p99: z.number(), max: z.number() }),
      ),
    }),
    line: Violation,
  },
  doctor: { json: z.strictObject({ ok: z.boolean(), findings: z.array(Finding) }), line: Finding },
  "context add": { json: Done },
  "context use": { json: Done },
  "context list": list(SavedContext),
  "context remove": { json: Done },
  provision: { json: z.strictObject({ made: z.array(z.string()), there: z.int() }) },
  "security init": { json: z.strictObject({ folder: z.string(), files: z.array(z.string()) }) },
  "security add-client": { json: Done },
  "security add-workers": { json: Done },
  "security rotate": { json: Done },
};

/** Shapes that docs/cli.md describes once, below all commands. */
export const ownShapes: Readonly<Record<string, z.ZodType>> = {
  Instance,
  DeadLetter: DeadLetterView,
  Schedule: ScheduleView,
  Finding,
};

/** Shapes of the wire contract, described by its JSON Schemas. */
export const wireShapes: Readonly<Record<string, { schema: z.ZodType; file: string }>> = {
  Event: { schema: HistoryEvent, file: "commit.json" },
  Commit: { schema: Commit, file: "commit.json" },
  Failure: { schema: Failure, file: "failure.json" },
  SessionRecord: { schema: SessionRecord, file: "session-record.json" },
  WorkerInfo: { schema: WorkerInfo, file: "worker-info.json" },
};
