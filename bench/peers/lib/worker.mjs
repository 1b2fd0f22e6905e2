// Runs inside every worker process: marks (timestamps kept in memory), events to the driver, calls from it.
export const now = () => Number(process.hrtime.bigint()) / 1e6;
export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const marks = new Map();
export function mark(key) {
  let a = marks.get(key);
  if (!a) marks.set(key, (a = []));
  a.push(now());
}
export function takeMarks(key) {
  const a = marks.get(key) ?? [];
  marks.delete(key);
  return a;
}
export function emit(ev, data = {}) {
  if (process.connected) process.send({ ev, t: now(), pid: process.pid, ...data });
}
export function serveCalls(ops) {
  const all = {
    marks: async (k) => takeMarks(k),
    ...ops,
  };
  process.on("message", async (m) => {
    if (!m?.call) return;
    try {
      process.send({ reply: m.call, value: await all[m.op](...m.args) });
    } catch (e) {
      process.send({ reply: m.call, error: String(e?.stack ?? e) });
    }
  });
  process.on("disconnect", () => process.exit(0));
  process.on("SIGTERM", () => process.exit(0));
}
export const ready = () => emit("ready");
