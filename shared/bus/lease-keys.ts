/**
 * Lease keys. Each attachment of a session has a key of its own, never reused: the bucket keeps one message
 * per key, so a new write would hide an unread expiry marker.
 */
export const leaseKeys = {
  session: (sessionId: string, attachment: number) => `session.${sessionId}.${attachment}`,
  partition: (partition: number) => `partition.${partition}`,
  allPartitions: "partition.*",
  parsePartition: (key: string): number => Number(key.slice("partition.".length)),
  service: (name: string) => `service.${name}`,
  /** A live orchestrator that shares in the partitions. */
  member: (id: string) => `member.${id}`,
  /** One numbered seat of a quota: of a session type, or of all sessions if `type` is undefined. */
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
