// Loaded into a service before it starts (node --expose-gc --import): says what is really in use.
process.on("message", (message) => {
  if (message?.probe !== "memory") return;
  globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  process.send?.({ heapUsed, rss });
});
// Listening alone must not keep the process alive.
process.channel?.unref();
