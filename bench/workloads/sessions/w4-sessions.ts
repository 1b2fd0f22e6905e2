import { machineMs } from "../../clock.ts";
import { ratioOf } from "../../report.ts";
import { inFlight, intervals, named, percentile } from "../../stats.ts";
import { untilStatus } from "../../waiting.ts";
import type { Workload } from "../../workload.ts";

/**
 * All sessions are open before the clock starts. `openedCallsPerSecond`: the same sessions and calls again, from
 * the first start to the last result.
 */
export const w4: Workload = {
  name: "W4",
  what: "200 sessions of 20 calls over 2 workers: calls per second",
  layouts: "one",
  async run(bench) {
    const { client } = await bench.sessionRig();
    const floor = await bench.sessionFloor();
    const sessions = bench.size(200, 60);
    const n = bench.size(20, 10);
    const engineRun = async (count: number) => {
      const handles = await inFlight(count, 64, () => client.start("stamped-calls", { n }));
      for (const handle of handles) await untilStatus(client, handle, "open");
      const startedAt = machineMs();
      await Promise.all(handles.map((handle) => handle.signal("go")));
      const stamps = await Promise.all(handles.map((handle) => handle.result() as Promise<number[]>));
      return { wallMs: machineMs() - startedAt, stamps };
    };
    const floorRun = (count: number) => floor.run({ instances: count, inFlight: count, steps: n, width: 1 });
    await floorRun(sessions / 4);
    await engineRun(sessions / 4);
    const raw = await floorRun(sessions);
    const engine = await engineRun(sessions);
    const began = machineMs();
    const opened = await inFlight(sessions, sessions, () => client.start("opened-calls", { n }));
    await Promise.all(opened.map((handle) => handle.result()));
    const openedCallsPerSecond = ((sessions * n) / (machineMs() - began)) * 1000;
    const figuresOf = ({ wallMs, stamps }: { wallMs: number; stamps: number[][] }) => {
      const calls = stamps.flatMap(intervals);
      return {
        callsPerSecond: ((sessions * n) / wallMs) * 1000,
        p50Ms: percentile(calls, 0.5),
        p99Ms: percentile(calls, 0.99),
      };
    };
    const figures = figuresOf(engine);
    const floorFigures = figuresOf(raw);
    bench.emit({
      sessions,
      n,
      ...figures,
      openedCallsPerSecond,
      ...named("floor", floorFigures),
      ...ratioOf("callsPerSecond", figures.callsPerSecond, floorFigures.callsPerSecond),
    });
  },
};
