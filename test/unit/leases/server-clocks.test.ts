/** Servers of a cluster whose clocks are apart: a lease may end early by as much when another takes the lead. */
import { expect, test } from "vitest";
import type { Bus, StreamInfo } from "../../../shared/bus/index.ts";
import { readServerClocks, skewOf } from "../../../shared/bus/server-clocks.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { LeaseKeeper } from "../../../shared/leases/index.ts";
import { seededRandom, silent } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { LeaseServer } from "./lease-server.ts";

/** Streams led by turns by servers whose clocks are ahead by so much; one that is away does not answer. */
function clusterOf(
  aheads: readonly (number | "away")[],
  of: Bus = new LeaseServer(new SimulatedClock()).bus(),
): Bus {
  const seen: string[] = [];
  const info = async (stream: string): Promise<StreamInfo | undefined> => {
    if (!seen.includes(stream)) seen.push(stream);
    const nth = seen.indexOf(stream) % aheads.length;
    const ahead = aheads[nth] ?? 0;
    if (ahead === "away") return new Promise(() => undefined);
    return {
      ...{
        name: stream,
        subjects: [],
        messages: 0,
        bytes: 0,
        firstSeq: 1,
        lastSeq: 0,
        consumers: 0,
        replicas: 3,
      },
      ...{ metadata: {}, leader: `n${nth}`, seenAt: Date.now() + ahead },
    };
  };
  return {
    ...of,
    clustered: () => true,
    // As for a worker where roles are on.
    streamNames: async () => {
      throw new Fault("config", { code: "permission_denied", message: "$JS.API.STREAM.NAMES" });
    },
    streamInfo: info,
  };
}

const keeper = (bus: Bus, clock: SimulatedClock, ttlMs: number): LeaseKeeper =>
  new LeaseKeeper({
    bus,
    bucket: "leases",
    runtime: { clock, random: seededRandom(1), announce: silent },
    ttlMs,
  });

test("each server's clock is read by way of the streams it leads", async () => {
  const readings = await readServerClocks(clusterOf([0, 400, -300]), ["S0", "S1", "S2", "S3"]);
  expect(readings.map(({ server }) => server).sort()).toEqual(["n0", "n1", "n2"]);
  const { leastMs, mostMs } = skewOf(readings);
  expect(leastMs).toBeGreaterThan(600);
  expect(leastMs).toBeLessThanOrEqual(700);
  expect(mostMs).toBeGreaterThanOrEqual(700);
});

test("defect 14: the margin of a lease follows the skew between the servers", async () => {
  const held = async (aheads: readonly number[]): Promise<number> => {
    const clock = new SimulatedClock();
    const leases = keeper(clusterOf(aheads, new LeaseServer(clock).bus()), clock, 15_000);
    await leases.start();
    const claimed = await clock.run(leases.claim("partition.1", { v: 1, holder: "w" }));
    if (claimed.kind !== "granted") throw new Error(claimed.kind);
    return (leases.deadlineOf(claimed.lease) ?? 0) - clock.monotonic();
  };
  const [even, skewed] = [await held([0, 0, 0]), await held([0, 2_000, 0])];
  expect(even).toBeGreaterThan(13_500);
  expect(skewed).toBeLessThanOrEqual(12_000);
  expect(skewed).toBeGreaterThan(11_500);
});

test("defect 14: beyond a third of the TTL nobody keeps leases on these servers", async () => {
  const clock = new SimulatedClock();
  await expect(keeper(clusterOf([0, 1_200, 0]), clock, 3_000).start()).rejects.toMatchObject({
    code: "server_clocks_apart",
    hint: expect.stringContaining("NTP"),
  });
  await expect(keeper(clusterOf([0, 1_200, 0]), clock, 15_000).start()).resolves.toBeUndefined();
});
