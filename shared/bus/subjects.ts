/** The only place that builds or parses a subject, a stream name or a bucket name; keys of leases: lease-keys.ts. */
import {
  type InboxVerb,
  inboxVerb,
  namedBehind,
  type PlainInboxVerb,
  verbsOfClients,
} from "../../schemas/inbox-verbs.ts";
import { poolQueue, tokenPattern, tokenRule } from "../../schemas/tokens.ts";
import { Fault } from "../errors/index.ts";

/** Throws unless the value is one safe token, before it becomes part of a subject. */
export function requireToken(what: string, value: unknown): string {
  if (typeof value === "string" && tokenPattern.test(value)) return value;
  throw new Fault("contract", {
    code: "invalid_id",
    message: notAllowed(what, value),
    hint: "Encode other characters, for example as base64url, or use a hash.",
  });
}

function notAllowed(what: string, value: unknown): string {
  const shown =
    typeof value === "string"
      ? JSON.stringify(value.length > 140 ? `${value.slice(0, 140)}…` : value)
      : typeof value;
  return `${what} ${shown} is not allowed: must be ${tokenRule}`;
}

type InboxAddress = { instanceId: string; verb: InboxVerb };

export type Subjects = ReturnType<typeof subjects>;

interface SubjectsOptions {
  /**
   * True if the installation was made before 0.2. It keeps its layout: timers are schedules in the inbox, and
   * the engine's leases are in the workers' bucket.
   */
  former?: boolean;
}

export function subjects(prefix = "", { former = false }: SubjectsOptions = {}) {
  if (prefix !== "") requireToken("prefix", prefix);
  const dot = prefix === "" ? "" : `${prefix}.`;
  const bar = prefix === "" ? "" : `${prefix}_`;
  const id = (value: string) => requireToken("instance id", value);
  const name = (value: string) => requireToken("name", value);
  const session = (value: string) => requireToken("session id", value);
  const worker = (value: string) => requireToken("worker id", value);
  const orchestration = (instanceId: string, rest: string) =>
    `${dot}orchestrations.${id(instanceId)}.${rest}`;

  const timerKind = former ? "timers" : "alarms";

  return {
    prefix,
    isFormer: former,

    // inbox
    inboxStream: `${bar}INBOX`,
    /**
     * Untrusted clients write here, so the stream takes no schedules, roll-ups or times to live (SEC-1):
     * timers have a stream of their own.
     */
    inboxSubjects: [`${dot}orchestrations.*.>`, ...(former ? [`${dot}timers.>`] : [])],
    inboxTransform: (partitions: number) => {
      // Wildcards are counted from the left; the prefix is literal and does not count.
      return {
        from: `${dot}orchestrations.*.>`,
        to: `${dot}inbox.{{partition(${partitions},1)}}.{{wildcard(1)}}.>`,
      };
    },
    inboxPartition: (partition: number) => `${dot}inbox.${partition}.>`,
    /** Every waiting message of one instance, in any partition. */
    inboxOf: (instanceId: string) => `${dot}inbox.*.${id(instanceId)}.>`,
    start: (instanceId: string, orchestrationName: string) =>
      orchestration(instanceId, `start.${name(orchestrationName)}`),
    signal: (instanceId: string, signalName: string) =>
      orchestration(instanceId, `signal.${name(signalName)}`),
    update: (instanceId: string, updateName: string) =>
      orchestration(instanceId, `update.${name(updateName)}`),
    verb: (instanceId: string, verb: PlainInboxVerb) => orchestration(instanceId, verb),

    // timers: schedules and the messages they publish, which the server copies into the inbox
    timersStream: former ? `${bar}INBOX` : `${bar}TIMERS`,
    timersSubjects: [`${dot}alarms.*.*.*`, `${dot}fired.*.>`],
    /**
     * One durable schedule per timer or deadline: a late write can only repeat its own schedule, never
     * replace another.
     */
    timer: (instanceId: string, execution: number, of: number) =>
      `${dot}${timerKind}.${id(instanceId)}.${execution}.${of}`,
    /** The schedule of a delayed start; one per instance. */
    delayedStart: (instanceId: string) => `${dot}${timerKind}.${id(instanceId)}.0.0`,
    allTimers: `${dot}${timerKind}.>`,
    timersOf: (instanceId: string) => `${dot}${timerKind}.${id(instanceId)}.>`,
    /** Where a schedule publishes a message for this subject of the inbox. */
    fired: (inboxSubject: string) =>
      former ? inboxSubject : `${dot}fired.${strip(inboxSubject, `${dot}orchestrations.`) ?? ""}`,
    /**
     * The server copies a fired timer into the inbox at once; the original is kept this long in case it could
     * not.
     */
    firedKeptMs: former ? undefined : 3_600_000,
    firedOf: (instanceId: string) => `${dot}fired.${id(instanceId)}.>`,
    /** The subject under which the inbox has what a schedule publishes there; the partition is none. */
    inboxOfFired: (target: string) =>
      `${dot}inbox.0.${strip(target, `${dot}fired.`) ?? strip(target, `${dot}orchestrations.`) ?? ""}`,
    firedTransform: (partitions: number) => ({
      from: `${dot}fired.*.>`,
      to: `${dot}inbox.{{partition(${partitions},1)}}.{{wildcard(1)}}.>`,
    }),
    parseTimer(subject: string): { execution: number; of: number } | undefined {
      const [kind, , execution, of, ...rest] = strip(subject, dot)?.split(".") ?? [];
      const wake = { execution: Number(execution), of: Number(of) };
      const isKind = kind === "alarms" || kind === "timers";
      return isKind && rest.length === 0 && wake.execution > 0 && wake.of > 0 ? wake : undefined;
    },
    /** Unacknowledged wakes of an instance, in any partition. */
    wakesOf: (instanceId: string) => `${dot}inbox.*.${id(instanceId)}.wake`,

    /**
     * The subject as its sender wrote it: without the partition for inbox subjects, any other subject
     * unchanged.
     */
    published(subject: string): string {
      const inbox = /^inbox\.\d+\.(.+)$/.exec(strip(subject, dot) ?? "");
      return inbox ? `${dot}orchestrations.${inbox[1]}` : subject;
    },

    /** Undefined if no verb matches: the caller dead-letters the message. */
    parseInbox(subject: string): InboxAddress | undefined {
      const tokens = strip(subject, dot)?.split(".");
      if (tokens?.[0] !== "inbox") return undefined;
      const [, , instanceId, verb, argument, ...rest] = tokens;
      if (!instanceId || !tokenPattern.test(instanceId) || !verb || rest.length > 0) return undefined;
      if (argument !== undefined && !tokenPattern.test(argument)) return undefined;
      const parsed = inboxVerb(verb, argument);
      return parsed && { instanceId, verb: parsed };
    },

    /** The instance id, whatever the verb. */
    inboxInstance(subject: string): string | undefined {
      const [, , instanceId = ""] = strip(subject, dot)?.split(".") ?? [];
      return tokenPattern.test(instanceId) ? instanceId : undefined;
    },

    /** Explains what is wrong with an inbox subject that `parseInbox` does not know. */
    whyNotInbox(subject: string): { code: string; message: string } {
      const [, , instanceId = "", verb = "", ...argument] = strip(subject, dot)?.split(".") ?? [];
      if (!tokenPattern.test(instanceId))
        return { code: "invalid_id", message: notAllowed("instance id", instanceId) };
      const named = namedBehind(verb);
      if (named !== undefined) return { code: "invalid_id", message: notAllowed(named, argument.join(".")) };
      const asked = [verb, ...argument].join(".").slice(0, 140);
      return {
        code: "unknown_subject",
        message: `unknown subject orchestrations.<id>.${asked}; after orchestrations.<id>. a client may use: ${verbsOfClients}`,
      };
    },

    // history
    ownHistoryStream: (instanceId: string) => `${bar}H_${id(instanceId)}`,
    parseOwnHistoryStream: (stream: string): string | undefined => strip(stream, `${bar}H_`),
    ownHistories: `${dot}history.*`,
    ownHistory: (instanceId: string) => `${dot}history.${id(instanceId)}`,
    sharedHistoryStream: (shard: number) => `${bar}HISTORY_${shard}`,
    sharedHistory: (shard: number, instanceId: string) => `${dot}history.${shard}.${id(instanceId)}`,
    sharedHistoryShard: (shard: number) => `${dot}history.${shard}.*`,
    sharedHistories: `${dot}history.*.*`,
    historyOwner: (subject: string): string | undefined => strip(subject, dot)?.split(".").at(-1),

    // work
    activitiesStream: `${bar}ACTIVITIES`,
    activitiesSubjects: [`${dot}activities.*.*`, `${dot}retries.>`],
    activity: (queue: string, activityName: string) =>
      `${dot}activities.${requireToken("queue", queue)}.${requireToken("activity name", activityName)}`,
    allActivities: `${dot}activities.*.*`,
    parseActivity(subject: string): { queue: string; name: string } | undefined {
      const [kind, queue, activityName, ...rest] = strip(subject, dot)?.split(".") ?? [];
      return kind === "activities" && queue && activityName && rest.length === 0
        ? { queue, name: activityName }
        : undefined;
    },
    /** A delayed attempt waits here as a schedule whose target is the activity's subject. */
    retry: (instanceId: string, execution: number, of: number, attempt: number) =>
      `${dot}retries.${id(instanceId)}.${execution}.${of}.${attempt}`,
    allRetries: `${dot}retries.>`,
    /** The separator cannot occur in a token: "a" + "b_c" and "a_b" + "c" must not share a consumer. */
    activityConsumer: (queue: string, activityName: string) => `a_${queue}=${activityName}`,
    /** Every call of a pool: its members take all of them from one consumer. */
    poolTasks: (poolId: string) => `${dot}activities.${requireToken("pool", poolQueue(poolId))}.*`,
    poolConsumer: (poolId: string) => `p_${poolId}`,
    claimsStream: `${bar}CLAIMS`,
    claimsSubjects: [`${dot}claims.*.*`],
    claim: (type: string, sessionId: string) =>
      `${dot}claims.${requireToken("session type", type)}.${session(sessionId)}`,
    allClaims: `${dot}claims.*.*`,
    claimsOf: (type: string) => `${dot}claims.${requireToken("session type", type)}.*`,
    claimConsumer: (type: string) => `c_${type}`,
    sessionsStream: `${bar}SESSIONS`,
    sessionsSubjects: [`${dot}sessions.*.*`, `${dot}delayed.>`],
    /** A delayed attempt of a session's call waits here as a schedule whose target is the holder's subject. */
    sessionRetry: (instanceId: string, execution: number, of: number, attempt: number) =>
      `${dot}delayed.${id(instanceId)}.${execution}.${of}.${attempt}`,
    sessionWork: (workerId: string, sessionId: string) =>
      `${dot}sessions.${worker(workerId)}.${session(sessionId)}`,
    allSessionRetries: `${dot}delayed.>`,
    allSessionWork: `${dot}sessions.*.*`,
    sessionWorkOf: (workerId: string) => `${dot}sessions.${worker(workerId)}.*`,
    parseSessionWork(subject: string): { workerId: string; sessionId: string } | undefined {
      const [kind, workerId, sessionId, ...rest] = strip(subject, dot)?.split(".") ?? [];
      return kind === "sessions" && workerId && sessionId && rest.length === 0
        ? { workerId, sessionId }
        : undefined;
    },
    /**
     * Calls sent straight to the holder, with a reply. Not stored: the session stream takes only subjects
     * of three tokens. With the type, so that a permission can name the types a group of workers serves (SEC-5).
     */
    sessionCalls: (type: string, workerId: string, sessionId: string) =>
      `${dot}sessions.${worker(workerId)}.${session(sessionId)}.calls.${requireToken("session type", type)}`,
    /** Only its worker knows `secret`: another worker can name the consumer neither to take from it nor to delete it. */
    workerConsumer: (workerId: string, secret: string) => `w_${workerId}=${secret}`,
    parseWorkerConsumer: (consumer: string): string | undefined => strip(consumer, "w_")?.split("=")[0],

    // streams: chunks that activities and calls write while they run
    streamsStream: `${bar}STREAMS`,
    streamsSubjects: [`${dot}streams.*.*.*`],
    stream: (instanceId: string, execution: number, of: number) =>
      `${dot}streams.${id(instanceId)}.${execution}.${of}`,
    streamsOf: (instanceId: string) => `${dot}streams.${id(instanceId)}.>`,

    /** Asks any orchestrator whether the capability on a chunk is genuine. */
    streamCheck: `${dot}check.stream`,

    // dead letters
    deadStream: `${bar}DEAD`,
    deadSubjects: [`${dot}dead.*.*`],
    dead: (what: string, about: string) =>
      `${dot}dead.${requireToken("kind of dead letter", what)}.${tokenPattern.test(about) ? about : "unknown"}`,

    parseDead: (subject: string): string | undefined => strip(subject, `${dot}dead.`)?.split(".")[0],

    // messages that wait for set-aside instances
    asideStream: `${bar}ASIDE`,
    asideSubjects: [`${dot}aside.*`],
    aside: (instanceId: string) => `${dot}aside.${id(instanceId)}`,

    // audit
    auditStream: `${bar}AUDIT`,
    auditSubjects: [`${dot}audit.*`],
    audit: (action: string) => `${dot}audit.${requireToken("action", action)}`,

    // plain messages: hints that may be lost
    /** Recent durations, from every process. */
    pulse: `${dot}pulse`,
    /** Asks one worker to look at this claim now, in the first generation of the wire format. */
    nudge: (workerId: string) => `${dot}nudge.${worker(workerId)}`,
    /** With the type, so that a permission can name the types a group of workers serves (SEC-5). */
    claimOffer: (workerId: string, type: string) =>
      `${dot}offers.${worker(workerId)}.${requireToken("session type", type)}`,
    /**
     * To any orchestrator, with a reply: offer this claim to that worker. Workers do not offer claims to each other,
     * because a worker may publish to no subject that it hears itself (SEC-6).
     */
    claimPass: (workerId: string) => `${dot}passes.${worker(workerId)}`,
    claimPasses: `${dot}passes.*`,
    parseClaimPass: (subject: string): string => subject.slice(subject.lastIndexOf(".") + 1),
    /** To all workers: a task was cancelled. */
    cancels: `${dot}cancels`,
    /** To anyone watching: this instance changed. `kind` is `changed` or `ended`. */
    notice: (instanceId: string, kind: "changed" | "ended") => `${dot}notices.${id(instanceId)}.${kind}`,
    noticesOf: (instanceId: string) => `${dot}notices.${id(instanceId)}.*`,
    allNotices: `${dot}notices.>`,
    /** To one worker, with a reply: drain. */
    workerControl: (workerId: string) => `${dot}control.${worker(workerId)}`,

    // the lane: work goes straight to a live worker and its result straight back; lost messages are made up for by the
    // queues
    /** To any worker that serves the activity, with a reply: at most one worker takes the task. */
    laneOfActivity: (queue: string, activityName: string) =>
      `${dot}lanes.activities.${requireToken("queue", queue)}.${requireToken("activity name", activityName)}`,
    /** To one worker that serves the activity, with a reply. */
    laneOfWorker: (workerId: string, queue: string, activityName: string) =>
      `${dot}lanes.workers.${worker(workerId)}.${requireToken("queue", queue)}.${requireToken("activity name", activityName)}`,
    /** `sessionCalls` in the first generation of the wire format. */
    laneOfSession: (workerId: string, sessionId: string) =>
      `${dot}lanes.sessions.${worker(workerId)}.${session(sessionId)}`,
    laneOfSessions: (workerId: string) => `${dot}lanes.sessions.${worker(workerId)}.*`,
    /**
     * To the orchestrator that sent the work, which replies when the result is recorded. `returned`: the work
     * was not finished.
     */
    laneOfOwner: (orchestratorId: string, instanceId: string, verb: "report" | "returned") =>
      `${dot}lanes.owners.${requireToken("orchestrator id", orchestratorId)}.${id(instanceId)}.${verb}`,
    laneOfOwners: (orchestratorId: string) =>
      `${dot}lanes.owners.${requireToken("orchestrator id", orchestratorId)}.*.*`,
    parseLaneOfOwner(subject: string): { instanceId: string; verb: string } | undefined {
      const [instanceId, verb] = subject.split(".").slice(-2);
      return instanceId && verb ? { instanceId, verb } : undefined;
    },
    /** To one worker: the owner recorded its reports. */
    laneOfRecordings: (workerId: string) => `${dot}lanes.recordings.${worker(workerId)}`,
    /** To one worker, with a reply: which of these tasks the worker does not have. */
    laneOfHoldings: (workerId: string) => `${dot}lanes.holdings.${worker(workerId)}`,
    /** To all workers; only a worker that has all of these tasks replies. */
    laneOfSeekers: `${dot}lanes.seekers`,

    /** To the owner of a keeper of flow control: a start that another orchestrator holds, or the end of a run. */
    laneOfKeeper: (keeperId: string) => `${dot}lanes.keepers.${id(keeperId)}`,
    laneOfKeepers: `${dot}lanes.keepers.*`,
    parseLaneOfKeeper: (subject: string): string => subject.slice(subject.lastIndexOf(".") + 1),
    /** To the orchestrator that holds a start, with a reply: what its keeper has decided. */
    laneOfHolder: (orchestratorId: string) =>
      `${dot}lanes.holders.${requireToken("orchestrator id", orchestratorId)}`,

    // endpoints
    endpoint: (verb: "start" | "status" | "result" | "schedule") => `${dot}${verb}.*`,
    parseEndpoint: (subject: string): string | undefined =>
      strip(subject, dot)?.split(".").slice(1).join("."),

    /** Opens, describes or closes the session of a key. */
    keyed: (type: string, key: string) =>
      `${dot}session.${requireToken("session type", type)}.${requireToken("key", key)}`,
    allKeyed: `${dot}session.*.*`,
    /** A call of a key's session; the reply is its result. */
    keyedCall: (type: string, key: string, callName: string) =>
      `${dot}call.${requireToken("session type", type)}.${requireToken("key", key)}.${requireToken("call", callName)}`,
    allKeyedCalls: `${dot}call.*.*.*`,
    /** Type, key, and the call name if the subject has one. */
    parseKeyed: (subject: string): string[] => strip(subject, dot)?.split(".").slice(1) ?? [],

    /** A query to an instance; its owner replies. */
    query: (instanceId: string, queryName: string) => `${dot}query.${id(instanceId)}.${name(queryName)}`,
    queries: `${dot}query.*.*`,
    /** The state of an update, sent to the client that waits for it. */
    answer: (instanceId: string, updateId: string) =>
      `${dot}answers.${id(instanceId)}.${requireToken("update id", updateId)}`,
    updates: `${dot}update.*.*`,
    parseUpdate: (subject: string): string[] => strip(subject, dot)?.split(".").slice(1) ?? [],
    parseQuery(subject: string): { instanceId: string; name: string } | undefined {
      const [verb, instanceId = "", queryName = "", ...rest] = strip(subject, dot)?.split(".") ?? [];
      if (verb !== "query" || rest.length > 0) return undefined;
      return tokenPattern.test(instanceId) && tokenPattern.test(queryName)
        ? { instanceId, name: queryName }
        : undefined;
    },

    /** True if the stream's name belongs to this installation. */
    isOwnStream: (stream: string): boolean =>
      new RegExp(`^(${bar}([A-Z]+|HISTORY_\\d+|H_.+)|(KV|OBJ)_${bar}[a-z]+)$`).test(stream),

    // buckets
    bucket: (bucket: BucketName) => `${bar}${bucket}`,
    /**
     * Leases of partitions, members and services. Not in the workers' lease bucket: a worker could remove
     * that bucket whole (SEC-1).
     */
    engineBucket: `${bar}${former ? "leases" : "engine"}`,
    blobBucket: `${bar}blobs`,
  };
}

export type BucketName =
  | "leases"
  | "engine"
  | "workers"
  | "instances"
  | "sessions"
  | "services"
  | "heartbeats"
  | "limits"
  | "settings";

const strip = (subject: string, prefix: string): string | undefined =>
  subject.startsWith(prefix) ? subject.slice(prefix.length) : undefined;

export const bucketStream = (bucket: string): string => `KV_${bucket}`;
export const bucketSubject = (bucket: string, key: string): string => `$KV.${bucket}.${key}`;
