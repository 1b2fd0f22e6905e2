/**
 * The catalogue of what can happen in a Holdfast process. Logs, metrics, the dashboard and tests listen to this and
 * to nothing else. Ids are fields, never parts of a text.
 */
export type Happening =
  // bus
  | { kind: "bus.connected"; url: string; version: string }
  | { kind: "bus.disconnected" }
  | { kind: "bus.reconnected"; awayMs: number }
  /** From now on this process writes what everybody alive can read, up to this generation. */
  | { kind: "generation.written"; generation: number; newest: number; heldBackBy: string[] }
  | { kind: "dead.lettered"; what: string; id: string; subject: string; code: string; message: string }
  // orchestrator
  | { kind: "partition.gained"; partition: number; epoch: number }
  | { kind: "partition.lost"; partition: number; why: "released" | "expired" | "taken" }
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
      replayed: boolean;
    }
  | { kind: "turn.fenced"; instanceId: string }
  | { kind: "append.ambiguous"; instanceId: string; landed: boolean }
  | { kind: "message.duplicate"; instanceId: string; verb: string; seq: number }
  | { kind: "completion.late"; instanceId: string; of: number; attempt: number }
  | { kind: "completion.fenced"; instanceId: string; of: number; epoch: number }
  /** A task given to a worker by the lane goes out again by the queue: the worker is gone, or has not got it. */
  | {
      kind: "lane.recalled";
      instanceId: string;
      of: number;
      workerId: string;
      why: "returned" | "missing" | "silent";
    }
  /** A task on the lane of the owner before is with a live worker, and stays there. */
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
  /** Given back untouched because no slot came free in time; others may have one. */
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
  /** Its time was over before it could begin: not run. */
  | {
      kind: "activity.expired";
      instanceId: string;
      name: string;
      of: number;
      timeout: "schedule_to_start" | "schedule_to_close";
      waitedMs: number;
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
  /** Said by a host outside of any request; what belongs to one is `work.log`. */
  | {
      kind: "host.log";
      host: string;
      level: "debug" | "info" | "warn" | "error";
      message: string;
      fields?: unknown;
    }
  /** A host said something that nobody asked for; it was dropped. */
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
