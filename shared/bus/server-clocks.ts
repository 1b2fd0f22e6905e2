/**
 * How far apart the clocks of a cluster's servers are. A lease ends by the clock of the server that leads its
 * bucket; when a server whose clock is ahead takes the lead, the lease ends that much earlier. Each server is
 * asked through the streams it leads.
 */
import type { Bus } from "./bus.ts";

export interface ServerClockReading {
  server: string;
  /** Ahead of this process's clock. */
  aheadMs: number;
  unsureMs: number;
}

/** The true skew lies between the two bounds. */
export interface ClockSkew {
  leastMs: number;
  mostMs: number;
}

const mostStreams = 40;
/** A stream without a leader does not answer and must not delay the caller. */
const patienceMs = 1_000;

export async function readServerClocks(
  bus: Pick<Bus, "streamInfo">,
  streams: readonly string[],
  now: () => number = Date.now,
): Promise<ServerClockReading[]> {
  const best = new Map<string, ServerClockReading>();
  const read = async (stream: string): Promise<void> => {
    const before = now();
    const info = await bus.streamInfo(stream);
    const after = now();
    if (info?.leader === undefined) return;
    const unsureMs = (after - before) / 2;
    const known = best.get(info.leader);
    if (known && known.unsureMs <= unsureMs) return;
    best.set(info.leader, { server: info.leader, aheadMs: info.seenAt - (before + after) / 2, unsureMs });
  };
  // One after the other: parallel requests would delay one another, and a slow answer is imprecise.
  const readAll = async (): Promise<void> => {
    for (const stream of streams.slice(0, mostStreams)) await read(stream).catch(() => undefined); // It has no leader.
  };
  let timer: NodeJS.Timeout | undefined;
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, patienceMs);
  });
  await Promise.race([readAll(), enough]);
  clearTimeout(timer);
  return [...best.values()];
}

export function skewOf(readings: readonly ServerClockReading[]): ClockSkew {
  let skew: ClockSkew = { leastMs: 0, mostMs: 0 };
  for (const a of readings) {
    for (const b of readings) {
      const apart = a.aheadMs - b.aheadMs;
      const unsure = a.unsureMs + b.unsureMs;
      skew = {
        leastMs: Math.max(skew.leastMs, apart - unsure),
        mostMs: a === b ? skew.mostMs : Math.max(skew.mostMs, apart + unsure),
      };
    }
  }
  return skew;
}
