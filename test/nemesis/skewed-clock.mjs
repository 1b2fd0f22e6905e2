// Loaded before everything else in a process whose wall clock is to be wrong (F30). Its monotonic clock is right.
const offsetMs = Number(process.env.HOLDFAST_TEST_CLOCK_OFFSET_MS ?? 0);
if (offsetMs !== 0) {
  const realNow = Date.now;
  const now = () => realNow() + offsetMs;
  Date.now = now;
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [now()] : args, self),
  });
}
