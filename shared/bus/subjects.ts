/** The only place that builds or parses a subject, a stream name or a bucket name. */
import { poolQueue, tokenPattern, tokenRule } from "../../schemas/tokens.ts";
import { Fault } from "../errors/index.ts";

/** Refuses anything that is not one safe token, before it can touch a subject. */
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

export type InboxVerb =
  | { kind: "start"; name: string }
  | { kind: "signal"; name: string }
  | { kind: "update"; name: string }
  | { kind: "cancel" }
  | { kind: "terminate" }
  | { kind: "activity" }
  | { kind: "child" }
  | { kind: "session" }
  | { kind: "wake" };

export type InboxAddress = { instanceId: string; verb: InboxVerb };

const plainVerbs = new Set(["cancel", "terminate", "activity", "child", "session", "wake"]);

export type Subjects = ReturnType<typeof subjects>;

export function subjects(prefix = "") {
  if (prefix !== "") requireToken("prefix", prefix);
  const dot = prefix === "" ? "" : `${prefix}.`;
  const bar = prefix === "" ? "" : `${prefix}_`;
  const id = (value: string) => requireToken("instance id", value);
  const name = (value: string) => requireToken("name", value);
  const session = (value: string) => requireToken("session id", value);
  const worker = (value: string) => requireToken("worker id", value);
  const orchestration = (instanceId: string, rest: string) =>
    `${dot}orchestrations.${id(instanceId)}.${rest}`;

  return {
    prefix,

    // inbox
    inboxStream: `${bar}INBOX`,
    inboxSubjects: [`${dot}orchestrations.*.>`, `${dot}timers.>`],
    inboxTransform: (partitions: number) => {
      // Wildcards are counted from the left; the prefix is literal and does not count.
      return {
        from: `${dot}orchestrations.*.>`,
        to: `${dot}inbox.{{partition(${partitions},1)}}.{{wildcard(1)}}.>`,
      };
    },
    inboxPartition: (partition: number) => `${dot}inbox.${partition}.>`,
    /** What waits for one instance, whatever its partition. */
    inboxOf: (instanceId: string) => `${dot}inbox.*.${id(instanceId)}.>`,
    start: (instanceId: string, orchestrationName: string) =>
      orchestration(instanceId, `start.${name(orchestrationName)}`),
    signal: (instanceId: string, signalName: string) =>
      orchestration(instanceId, `signal.${name(signalName)}`),
    update: (instanceId: string, updateName: string) =>
      orchestration(instanceId, `update.${name(updateName)}`),
    verb: (instanceId: string, verb: "cancel" | "terminate" | "activity" | "child" | "session" | "wake") =>
      orchestration(instanceId, verb),
    /** One durable schedule per timer or deadline: a late one can only repeat, never replace another's. */
    timer: (instanceId: string, execution: number, of: number) =>
      `${dot}timers.${id(instanceId)}.${execution}.${of}`,
    /** A start that waits for its time: one of an instance. */
    delayedStart: (instanceId: string) => `${dot}timers.${id(instanceId)}.0.0`,
    allTimers: `${dot}timers.>`,
    timersOf: (instanceId: string) => `${dot}timers.${id(instanceId)}.>`,
    parseTimer(subject: string): { execution: number; of: number } | undefined {
      const [kind, , execution, of, ...rest] = strip(subject, dot)?.split(".") ?? [];
      const wake = { execution: Number(execution), of: Number(of) };
      const isTimer = kind === "timers" && rest.length === 0 && wake.execution > 0 && wake.of > 0;
      return isTimer ? wake : undefined;
    },
    /** Wakes of an instance that nobody has acknowledged, whatever its partition. */
    wakesOf: (instanceId: string) => `${dot}inbox.*.${id(instanceId)}.wake`,

    /** As its sender wrote it: what the inbox stores under a partition, and anything else as it is. */
    published(subject: string): string {
      const inbox = /^inbox\.\d+\.(.+)$/.exec(strip(subject, dot) ?? "");
      return inbox ? `${dot}orchestrations.${inbox[1]}` : subject;
    },

    /** Undefined for what no verb matches: it is dead-lettered by the caller. */
    parseInbox(subject: string): InboxAddress | undefined {
      const tokens = strip(subject, dot)?.split(".");
      if (tokens?.[0] !== "inbox") return undefined;
      const [, , instanceId, verb, argument, ...rest] = tokens;
      if (!instanceId || !tokenPattern.test(instanceId) || !verb || rest.length > 0) return undefined;
      if (verb === "start" || verb === "signal" || verb === "update") {
        return argument && tokenPattern.test(argument)
          ? { instanceId, verb: { kind: verb, name: argument } }
          : undefined;
      }
      if (argument !== undefined || !plainVerbs.has(verb)) return undefined;
      return { instanceId, verb: { kind: verb } as InboxVerb };
    },

    /** What is wrong with a subject of the inbox that `parseInbox` does not know, by its rules. */
    /** Whose it is, whatever the verb. */
    inboxInstance(subject: string): string | undefined {
      const [, , instanceId = ""] = strip(subject, dot)?.split(".") ?? [];
      return tokenPattern.test(instanceId) ? instanceId : undefined;
    },

    whyNotInbox(subject: string): { code: string; message: string } {
      const [, , instanceId = "", verb = "", ...argument] = strip(subject, dot)?.split(".") ?? [];
      if (!tokenPattern.test(instanceId))
        return { code: "invalid_id", message: notAllowed("instance id", instanceId) };
      if (verb === "start" || verb === "signal" || verb === "update") {
        const what = verb === "start" ? "orchestration name" : `${verb} name`;
        return { code: "invalid_id", message: notAllowed(what, argument.join(".")) };
      }
      const asked = [verb, ...argument].join(".").slice(0, 140);
      const known = "start.<name>, signal.<name>, update.<name>, cancel, terminate";
      return {
        code: "unknown_subject",
        message: `nothing is called ${JSON.stringify(asked)} behind orchestrations.<id>; there are: ${known}`,
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
    /** With a separator no token can hold: "a" + "b_c" and "a_b" + "c" must not share a consumer. */
    activityConsumer: (queue: string, activityName: string) => `a_${queue}=${activityName}`,
    /** All calls of a pool, whichever call it is: its members take them from one consumer. */
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
    workerConsumer: (workerId: string) => `w_${workerId}`,
    parseWorkerConsumer: (consumer: string): string | undefined => strip(consumer, "w_"),

    // what work writes out while it runs
    streamsStream: `${bar}STREAMS`,
    streamsSubjects: [`${dot}streams.*.*.*`],
    stream: (instanceId: string, execution: number, of: number) =>
      `${dot}streams.${id(instanceId)}.${execution}.${of}`,
    streamsOf: (instanceId: string) => `${dot}streams.${id(instanceId)}.>`,

    // dead letters
    deadStream: `${bar}DEAD`,
    deadSubjects: [`${dot}dead.*.*`],
    dead: (what: string, about: string) =>
      `${dot}dead.${requireToken("kind of dead letter", what)}.${tokenPattern.test(about) ? about : "unknown"}`,

    // what waits for instances that were set aside
    asideStream: `${bar}ASIDE`,
    asideSubjects: [`${dot}aside.*`],
    aside: (instanceId: string) => `${dot}aside.${id(instanceId)}`,

    // audit
    auditStream: `${bar}AUDIT`,
    auditSubjects: [`${dot}audit.*`],
    audit: (action: string) => `${dot}audit.${requireToken("action", action)}`,

    // plain messages: hints that may be lost
    /** How long things took lately, from every process. */
    pulse: `${dot}pulse`,
    /** To one worker: a claim it should look at now. */
    nudge: (workerId: string) => `${dot}nudge.${worker(workerId)}`,
    /** To all workers: a task was cancelled. */
    cancels: `${dot}cancels`,
    /** To whoever looks: this instance changed. `kind` is `changed` or `ended`. */
    notice: (instanceId: string, kind: "changed" | "ended") => `${dot}notices.${id(instanceId)}.${kind}`,
    noticesOf: (instanceId: string) => `${dot}notices.${id(instanceId)}.*`,
    allNotices: `${dot}notices.>`,
    /** To one worker, answered: drain. */
    workerControl: (workerId: string) => `${dot}control.${worker(workerId)}`,

    // the lane: work straight to a live worker and its result straight back; lost messages are made up for by the queues
    /** Any worker that serves the activity, answered: one of them takes the task or none does. */
    laneOfActivity: (queue: string, activityName: string) =>
      `${dot}lanes.activities.${requireToken("queue", queue)}.${requireToken("activity name", activityName)}`,
    /** The holder of a session, answered. */
    laneOfSession: (workerId: string, sessionId: string) =>
      `${dot}lanes.sessions.${worker(workerId)}.${session(sessionId)}`,
    laneOfSessions: (workerId: string) => `${dot}lanes.sessions.${worker(workerId)}.*`,
    /** Whoever sent the work, answered when the result is recorded. `returned`: it could not be finished. */
    laneOfOwner: (orchestratorId: string, instanceId: string, verb: "report" | "returned") =>
      `${dot}lanes.owners.${requireToken("orchestrator id", orchestratorId)}.${id(instanceId)}.${verb}`,
    laneOfOwners: (orchestratorId: string) =>
      `${dot}lanes.owners.${requireToken("orchestrator id", orchestratorId)}.*.*`,
    parseLaneOfOwner(subject: string): { instanceId: string; verb: string } | undefined {
      const [instanceId, verb] = subject.split(".").slice(-2);
      return instanceId && verb ? { instanceId, verb } : undefined;
    },
    /** One worker: what it told is recorded. */
    laneOfRecordings: (workerId: string) => `${dot}lanes.recordings.${worker(workerId)}`,
    /** One worker, answered: which of these tasks it does not have. */
    laneOfHoldings: (workerId: string) => `${dot}lanes.holdings.${worker(workerId)}`,
    /** All workers; only one that has all of these tasks answers. */
    laneOfSeekers: `${dot}lanes.seekers`,

    // endpoints
    endpoint: (verb: "start" | "status" | "result" | "schedule") => `${dot}${verb}.*`,
    parseEndpoint: (subject: string): string | undefined =>
      strip(subject, dot)?.split(".").slice(1).join("."),

    /** A question about an instance; answered by its owner. */
    query: (instanceId: string, queryName: string) => `${dot}query.${id(instanceId)}.${name(queryName)}`,
    queries: `${dot}query.*.*`,
    /** How an update stands, to whoever waits for it. */
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

    // buckets
    bucket: (bucket: BucketName) => `${bar}${bucket}`,
    blobBucket: `${bar}blobs`,
  };
}

export type BucketName =
  | "leases"
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

/** Lease keys. One per attachment of a session, never reused: with history 1 a new write would cover an unread marker. */
export const leaseKeys = {
  session: (sessionId: string, attachment: number) => `session.${sessionId}.${attachment}`,
  partition: (partition: number) => `partition.${partition}`,
  allPartitions: "partition.*",
  parsePartition: (key: string): number => Number(key.slice("partition.".length)),
  service: (name: string) => `service.${name}`,
  /** An orchestrator that is alive and shares in the partitions. */
  member: (id: string) => `member.${id}`,
  /** One of the numbered seats of a quota: of a type, or of all sessions where there is none. */
  seat: (type: string | undefined, seat: number) =>
    type === undefined ? `quota.all.${seat}` : `quota.type.${type}.${seat}`,
  allSeats: "quota.>",
  parseSeat(key: string): { type: string | undefined; seat: number } | undefined {
    const match = /^quota\.(?:all|type\.([A-Za-z0-9_-]{1,128}))\.(\d+)$/.exec(key);
    return match ? { type: match[1], seat: Number(match[2]) } : undefined;
  },
  allSessions: "session.>",
  /** Every attachment of one session. */
  allOf: (sessionId: string) => `session.${sessionId}.*`,
  parseSession(key: string): { sessionId: string; attachment: number } | undefined {
    const match = /^session\.([A-Za-z0-9_-]{1,128})\.(\d+)$/.exec(key);
    return match?.[1] ? { sessionId: match[1], attachment: Number(match[2]) } : undefined;
  },
};
