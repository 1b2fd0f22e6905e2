/** Every header the engine writes or reads. */
export const headerNames = {
  /** The server stores a message id once within the stream's window. */
  messageId: "Nats-Msg-Id",
  /** The server stores the message only if the subject's last sequence is this one. */
  expectedLastSubjectSeq: "Nats-Expected-Last-Subject-Sequence",
  /** How long the server keeps the message. */
  ttl: "Nats-TTL",
  /** Removes the earlier messages of the subject. */
  rollup: "Nats-Rollup",
  /** On the marker the server writes in place of a message it removed. */
  markerReason: "Nats-Marker-Reason",
  /** Makes the message a schedule; the value is the time. */
  schedule: "Nats-Schedule",
  /** The subject to which a schedule publishes. */
  scheduleTarget: "Nats-Schedule-Target",
  /** How long the server keeps the message a schedule publishes. */
  scheduleTtl: "Nats-Schedule-TTL",
  /** On a message that a schedule published: the subject of the schedule. */
  scheduler: "Nats-Scheduler",
  /** On a message that a schedule published: the next time, or `purge` if that was the only one. */
  scheduleNext: "Nats-Schedule-Next",
  /** On the reply of a direct get: where the message is stored, and when it was. */
  storedSubject: "Nats-Subject",
  storedSeq: "Nats-Sequence",
  storedAt: "Nats-Time-Stamp",
  storedStream: "Nats-Stream",
  /** On the replies of a batch get: how many messages follow, and the sequence of the one before. */
  pending: "Nats-Num-Pending",
  previousSeq: "Nats-Last-Sequence",
  /** On the heartbeat of a pull: the number of the last delivery that was sent. */
  lastDelivery: "Nats-Last-Consumer",
  /** On the error reply of a NATS service. */
  serviceError: "Nats-Service-Error",
  serviceErrorCode: "Nats-Service-Error-Code",
  /** On the marker that deletes a bucket's key. */
  kvOperation: "KV-Operation",
  /** The body lies in the blob store; the value is its BlobRef. */
  blob: "Holdfast-Blob",
  /** On a start: the parent instance, which waits for the new instance's end. */
  parent: "Holdfast-Parent",
  /** On a start: the instance that receives a message when the new instance ends. */
  follower: "Holdfast-Follower",
  /** On a start: the parent's sessions that the new instance may use. */
  grants: "Holdfast-Grants",
  /** On a start with the three headers above: shows that an orchestrator set them (C1). */
  capability: "Holdfast-Capability",
  /** On a request to start: the id for the new instance. */
  instanceId: "Holdfast-Id",
  /** On a request to start: the delay before the start. */
  delay: "Holdfast-Delay",
  /** On a request to start: its flow-control limits. */
  flow: "Holdfast-Flow",
  /** On a request: how long its sender waits for the reply. */
  wait: "Holdfast-Wait",
  /** On an update: the stage its sender waits for. */
  waitFor: "Holdfast-Wait-For",
  /** On a call by key: the session's config as JSON, its loss policy and its time to live. */
  keyConfig: "Holdfast-Config",
  keyOnLost: "Holdfast-On-Lost",
  keyTtl: "Holdfast-Ttl",
  /** On a message of a set-aside instance: the message's sequence in the inbox. */
  aside: "Holdfast-Aside",
  /** On a lease: the claim that wrote it, so that a claimer recognises its own write after a lost answer. */
  claim: "Holdfast-Claim",
  /** On a bucket entry: the id of the write, for the same purpose. */
  write: "Holdfast-Write",
  /**
   * On the marker of a session's removed entry: the session that had ended, so that no late write restores
   * its entry.
   */
  over: "Holdfast-Over",
  /** Id of the commit: distinguishes our own ambiguous append from another owner's. */
  commit: "Holdfast-Commit",
  /** Sequence at which the commit's execution began. Without this header: with this message. */
  executionStart: "Holdfast-Execution-Start",
  /** Nothing may follow on this subject (shared/history). */
  sealed: "Holdfast-Sealed",
  /** On a seal: sequence of the last commit before it. */
  sealedLast: "Holdfast-Sealed-Last",
  /** On the first message of an archived history. Earlier messages of the subject are not part of it. */
  archived: "Holdfast-Archived",
  /** On a commit copied from the shared stream, while its instance gets a stream of its own. */
  copied: "Holdfast-Copied",
} as const;
