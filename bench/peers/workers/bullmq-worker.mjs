// BullMQ workers. ROLE=flow: orchestrating jobs; ROLE=act: step jobs and session jobs.
import { Queue, QueueEvents, Worker } from "bullmq";
import { emit, mark, now, ready, serveCalls, sleep } from "../lib/worker.mjs";

const role = process.env.ROLE;
const connection = { host: "127.0.0.1", port: Number(process.env.REDIS_PORT) };
const index = process.env.INDEX ?? "0";
const mem = new Map();
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
  const sess = {},
    sessEvents = {};
  for (const k of ["1", "2"]) {
    sess[k] = new Queue(`sess${k}`, { connection });
    sessEvents[k] = new QueueEvents(`sess${k}`, { connection });
  }
  await Promise.all([stepEvents, ...Object.values(sessEvents)].map((e) => e.waitUntilReady()));
  worker(
    "flows",
    async (job) => {
      const { kind, n, key, ms, i } = job.data;
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
      if (kind === "slow") {
        for (let k = job.data.step ?? 0; k < n; k++) {
          emit("step", { key, i: k });
          await sleep(ms);
          await job.updateData({ ...job.data, step: k + 1 });
        }
        return { n };
      }
      if (kind === "session") {
        const q = job.data.pin,
          lat = [];
        for (let k = 0; k < job.data.calls; k++) {
          const t = now();
          await (await sess[q].add("add", { id: job.data.id, k })).waitUntilFinished(sessEvents[q]);
          lat.push(now() - t);
        }
        return lat;
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
  worker(
    `sess${index}`,
    async (job) => {
      const { id, k } = job.data;
      const st = mem.get(id) ?? { n: 0, sum: 0 };
      st.n++;
      st.sum += k;
      mem.set(id, st);
      return st;
    },
    100,
  );
}
serveCalls({});
await Promise.all(all.map((w) => w.waitUntilReady()));
ready();
