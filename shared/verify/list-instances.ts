/**
 * Lists all instances from the streams of histories, each once; keeps one number in memory per history of one
 * stream.
 */
import type { Installation } from "./installation.ts";

export async function* instanceIds(
  installation: Installation,
  only?: string,
): AsyncGenerator<string, void, undefined> {
  if (only !== undefined) {
    yield only;
    return;
  }
  const { bus, names } = installation;
  const own = await bus.streamNames(names.ownHistories);
  const seen = new Set<string>();
  for (const stream of own) {
    const instanceId = names.parseOwnHistoryStream(stream);
    if (instanceId === undefined) continue;
    seen.add(instanceId);
    yield instanceId;
  }
  for (let shard = 0; shard < installation.shards; shard++) {
    const met = new Set<number>();
    for await (const { subject } of installation.messages(names.sharedHistoryStream(shard))) {
      const instanceId = names.historyOwner(subject);
      if (instanceId === undefined || met.has(digest(instanceId))) continue;
      met.add(digest(instanceId));
      if (!seen.has(instanceId)) yield instanceId;
    }
  }
}

/** 53 bits: among a million ids, two are the same once in ten thousand runs. */
function digest(id: string): number {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < id.length; i++) {
    const code = id.charCodeAt(i);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return 4294967296 * (2097151 & low) + (high >>> 0);
}
