import { ratioOf } from "../../report.ts";
import { intervals, named, spread } from "../../stats.ts";
import type { Workload } from "../../workload.ts";

/** The floor of a warm call is the plain remote activity. */
export const warm: Workload = {
  name: "warm",
  what: "a call on an open session against a plain remote activity, in sequence",
  layouts: "one",
  async run(bench) {
    const { client } = await bench.sessionRig();
    const n = bench.size(500, 200);
    const calls = async (): Promise<number[]> => {
      const handle = await client.start("stamped-calls", { n });
      await handle.signal("go");
      return intervals((await handle.result()) as number[]);
    };
    const activities = async (): Promise<number[]> => {
      const handle = await client.start("stamped-steps", { n });
      return intervals((await handle.result()) as number[]);
    };
    await activities();
    await calls();
    const callMs: number[] = [];
    const activityMs: number[] = [];
    for (let round = 0; round < bench.size(4, 2); round++) {
      activityMs.push(...(await activities()));
      callMs.push(...(await calls()));
    }
    const call = spread(callMs);
    const activity = spread(activityMs);
    bench.emit({
      n: callMs.length,
      ...call,
      ...named("floor", { ...activity }),
      ...ratioOf("p50Ms", call.p50Ms, activity.p50Ms, { atMost: 1.1 }),
      ratioMean: call.meanMs / activity.meanMs,
    });
  },
};
