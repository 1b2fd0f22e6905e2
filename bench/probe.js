// Loaded into a service before it starts (node --expose-gc --import): reports figures that only the process
// itself knows.
import { monitorEventLoopDelay } from "node:perf_hooks";

/** Begun by the first question. */
let loop;

const answers = {
  memory: () => {
    globalThis.gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    return { heapUsed, rss };
  },
  /** Of the main thread, since the last time it was asked. */
  loop: () => {
    const p99Ms = loop ? loop.percentile(99) / 1e6 : 0;
    loop?.disable();
    loop = monitorEventLoopDelay({ resolution: 1 });
    loop.enable();
    return { p99Ms };
  },
};

process.on("message", (message) => {
  const answer = answers[message?.probe];
  if (answer) process.send?.(answer());
});
// Listening alone must not keep the process alive.
process.channel?.unref();
