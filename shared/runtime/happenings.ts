/**
 * The catalogue of everything that can happen in a Holdfast process. Logs, metrics, the dashboard and tests
 * listen to these happenings and to nothing else. Ids are fields, never parts of a text.
 */
export type Happening =
  // bus
  | { kind: "bus.connected"; url: string; version: string }
  | { kind: "bus.disconnected" }
  | { kind: "bus.reconnected"; awayMs: number }
  /** From now on this process writes up to this generation, the newest that every live process can read. */
  | { kind: "generation.written"; generation: number; newest: number; heldBackBy: string[] }
  | { kind: "dead.lettered"; what: string; id: string; subject: string; code: string; message: string }
  // orchestrator
  | { kind: "partition.gained"; partition: number; epoch: number }
  | { kind: "partition.lost"; partition: number; why: "released" | "expired" }
  | { kind: "instance.started"; instanceId: string; name: string; execution: number }
  | {
      kind: "instance.closed";
      instanceId: string;
      name: string;
      status: string;
      durationMs: number;
      traceparent?: string | undefined;
    }
  | { kind: "instance.loaded"; instanceId: string; events: number; ms: number }
  | { kind: "instance.parked"; instanceId: string; code: string; message: string }
  | { kind: "instance.resumed"; instanceId: string }
  | {
      kind: "turn.committed";
      instanceId: string;
      execution: number;
      events: number;
      turnMs: number;
      appendMs: number;
    }
  | { kind: "turn.fenced"; instanceId: string }
  /**
   * The effects of the last commit are published again: the owner that made it may have died before
   * publishing them (T3).
   */
  | { kind: "commit.owed"; instanceId: string }
  | { kind: "append.ambiguous"; instanceId: string; landed: boolean }
  | { kind: "message.duplicate"; instanceId: string; verb: string; seq: number }
  | { kind: "completion.late"; instanceId: string; of: number; attempt: number }
  | { kind: "completion.fenced"; instanceId: string; of: number; epoch: number }
  /** A message that shows no capability, or not the right one, was refused (C1). */
  | { kind: "capability.refused"; what: string; why: "missing" | "wrong"; instanceId: string }
  /** A message without a capability was believed: HOLDFAST_ORCHESTRATOR_CAPABILITIES=accept. */
  | { kind: "capability.missing" }
  /** A task sent by the lane goes out again by the queue: its worker is gone, or does not have it. */
  | {
      kind: "lane.recalled";
      instanceId: string;
      of: number;
      workerId: string;
      why: "returned" | "missing" | "silent" | "dead";
    }
  /**
   * The worker's death was proved and its register entry removed; `tasks`: how many of its tasks returned to
   * the queue at once.
   */
  | { kind: "worker.died"; workerId: string; tasks: number }
  /** The orchestrator's death was proved; its partitions are free. */
  | { kind: "orchestrator.died"; id: string; partitions: number }
  /** A task that an earlier owner sent by the lane is with a live worker, and stays there. */
  | { kind: "lane.adopted"; instanceId: string; of: number; workerId: string }
  | { kind: "signal.unheard"; instanceId: string; name: string; why: string }
  | { kind: "history.long"; instanceId: string; events: number; limit: number }
  | { kind: "history.shared"; live: number; limit: number }
  | { kind: "history.archived"; instanceId: string }
  | {
      kind: "orchestration.log";
      instanceId: string;
      level: "debug" | "info" | "warn" | "error";
      message: string;
      fields?: unknown;
    }
  // worker
  | { kind: "worker.ready"; workerId: string }
  | { kind: "worker.draining"; workerId: string }
  | {
      kind: "activity.started";
      instanceId: string;
      name: string;
      of: number;
      attempt: number;
      redelivered: boolean;
      waitedMs: number;
    }
  | {
      kind: "activity.ended";
      instanceId: string;
      name: string;
      of: number;
      attempt: number;
      outcome: "completed" | "failed" | "cancelled" | "timeout";
      ms: number;
      traceparent?: string | undefined;
    }
  /**
   * The worker returned the task untouched because no slot came free in time; another worker may have one.
   */
  | { kind: "activity.handed_back"; instanceId: string; name: string; of: number; why: "surplus" | "drain" }
  | {
      kind: "work.log";
      instanceId: string;
      name: string;
      of: number;
      attempt: number;
      sessionId?: string;
      level: "debug" | "info" | "warn" | "error";
      message: string;
      fields?: unknown;
    }
  /** The task was not run: its timeout had passed before it could begin, or before it was delivered again. */
  | {
      kind: "activity.expired";
      instanceId: string;
      name: string;
      of: number;
      timeout: "schedule_to_start" | "schedule_to_close" | "heartbeat";
      waitedMs: number;
    }
  /** The watcher reported to the instance that the run has ended: no heartbeat came in time. */
  | {
      kind: "activity.silent";
      instanceId: string;
      name: string;
      of: number;
      attempt: number;
      /** Time from the expiry to the report. */
      lateMs: number;
    }
  | { kind: "activity.poisoned"; instanceId: string; name: string; of: number; deliveries: number }
  | {
      kind: "claim.seen";
      sessionId: string;
      type: string;
      verdict: "taken" | "forwarded" | "refused" | "raced" | "stale";
      why?: string;
    }
  | {
      kind: "session.attached";
      sessionId: string;
      type: string;
      epoch: number;
      initMs: number;
      warm: boolean;
      restored: boolean;
      openedMs: number;
      instanceId?: string | undefined;
      traceparent?: string | undefined;
    }
  | { kind: "session.init_failed"; sessionId: string; type: string; epoch: number; message: string }
  | { kind: "session.detached"; sessionId: string; type: string; epoch: number; why: string; detail?: string }
  | {
      kind: "call.started";
      sessionId: string;
      type: string;
      name: string;
      of: number;
      epoch: number;
      waitedMs: number;
    }
  | {
      kind: "call.ended";
      sessionId: string;
      type: string;
      name: string;
      of: number;
      epoch: number;
      outcome: "completed" | "failed" | "cancelled" | "timeout";
      ms: number;
      instanceId?: string | undefined;
      traceparent?: string | undefined;
    }
  | { kind: "batch.ran"; type: string; name: string; size: number; ms: number }
  | { kind: "host.started"; host: string; isolation: string; pid?: number }
  | { kind: "host.ended"; host: string; isolation: string; why: string; detail?: string }
  /** A log line of a host outside of any request; lines of a request are `work.log`. */
  | {
      kind: "host.log";
      host: string;
      level: "debug" | "info" | "warn" | "error";
      message: string;
      fields?: unknown;
    }
  /** A host sent a message that no request asked for; it was dropped. */
  | { kind: "host.refused"; host: string; why: string; request: number }
  | { kind: "model.loaded"; model: string; device: string; loadMs: number; bytes?: number; why?: string }
  // leases and watcher
  | { kind: "lease.granted"; key: string; epoch: number }
  | { kind: "lease.renewed"; keys: number; ms: number }
  | { kind: "lease.lost"; key: string; epoch: number; why: "expired" | "taken" | "stalled" | "released" }
  | { kind: "watcher.acting"; id: string }
  | { kind: "watcher.standby"; id: string }
  | { kind: "watcher.grace"; ms: number; why: string }
  | {
      kind: "session.lost";
      sessionId: string;
      instanceId: string;
      attachment: number;
      reason: string;
      lateMs?: number;
    }
  | { kind: "retention.swept"; step: string; done: number; ms: number }
  | { kind: "work.purged"; workerId: string; sessionId: string; messages: number }
  // anything
  | { kind: "fault"; where: string; code: string; message: string; error?: unknown };

export type Announce = (happening: Happening) => void;

export const silent: Announce = () => undefined;
