// BullMQ workers. ROLE=flow: orchestrating jobs; ROLE=act: step jobs.
import { Queue, QueueEvents, Worker } from "bullmq";
import { emit, mark, ready, serveCalls } from "../lib/worker.mjs";

const role = process.env.ROLE;
const connection = { host: "127.0.0.1", port: Number(process.env.REDIS_PORT) };
const all = [];
const worker = (q, fn, concurrency) => {
  const w = new Worker(q, fn, { connection, concurrency });
  w.on("error", (e) => console.error(e.message));
  all.push(w);
  return w;
};

if (role === "flow") {
  const steps = new Queue("steps", { connection });
  const stepEvents = new QueueEvents("steps", { connection });
  await stepEvents.waitUntilReady();
  worker(
    "flows",
    async (job) => {
      const { kind, n, key, i } = job.data;
      if (kind === "seqRpc") {
        let last;
        for (let k = 0; k < n; k++)
          last = await (await steps.add("step", { i: k, key })).waitUntilFinished(stepEvents);
        return last;
      }
      if (kind === "seqStep") {
        // "process step jobs" pattern: the step reached is saved in the job's data
        for (let k = job.data.step ?? 0; k < n; k++) {
          mark(key);
          await job.updateData({ ...job.data, step: k + 1, out: { i: k } });
        }
        return { n };
      }
      if (kind === "short") {
        for (let k = job.data.step ?? 0; k < 3; k++)
          await job.updateData({ ...job.data, step: k + 1, out: { i } });
        return { i };
      }
      return { i };
    },
    200,
  );
  worker(
    "held",
    async (job) => {
      emit("woke", { key: job.data.key, i: job.data.r });
      return {};
    },
    50,
  );
}
if (role === "act") {
  worker(
    "steps",
    async (job) => {
      if (job.data.key) mark(job.data.key);
      return { i: job.data.i };
    },
    100,
  );
}
serveCalls({});
await Promise.all(all.map((w) => w.waitUntilReady()));
ready();
