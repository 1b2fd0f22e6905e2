import fs from "node:fs";
import path from "node:path";
import { FlowProducer, Queue, QueueEvents } from "bullmq";
import * as M from "../lib/measure.mjs";
import { DATA, forkWorker, pkgVersion, rmrf, spawnLogged, stopChild, waitPort } from "../lib/util.mjs";

const PORT = 15379;
export function create({ variant } = {}) {
  const always = variant === "always";
  const dir = path.join(DATA, "redis");
  let redis,
    flow,
    acts = [],
    flows,
    held,
    flowEvents,
    stepEvents,
    steps,
    fp,
    seq = 0;
  const run = Date.now().toString(36);
  const uid = (p) => `${p}-${run}-${seq++}`;
  const box = M.eventBox();
  const env = { REDIS_PORT: String(PORT), NODE_ENV: "production" };
  const spawnFlow = () =>
    forkWorker("bullmq-flow", "workers/bullmq-worker.mjs", { ...env, ROLE: "flow" }, { onEvent: box.on });
  const marks = async (k) => (await Promise.all(acts.map((a) => a.call("marks", k)))).flat();
  const opts = { removeOnComplete: false };
  return {
    name: always ? "bullmq-aof-always" : "bullmq",
    version: `bullmq ${pkgVersion("bullmq")}, redis 7.0`,
    durability: always
      ? "Redis AOF, appendfsync always"
      : "Redis AOF, appendfsync everysec (what the BullMQ production guide recommends; up to 1 s of acknowledged work can be lost)",
    async start() {
      rmrf(dir);
      fs.mkdirSync(dir, { recursive: true });
      redis = spawnLogged(
        "redis",
        "redis-server",
        [
          "--bind",
          "127.0.0.1",
          "--port",
          String(PORT),
          "--dir",
          dir,
          "--appendonly",
          "yes",
          "--appendfsync",
          always ? "always" : "everysec",
          "--maxmemory-policy",
          "noeviction",
        ],
        { cwd: dir },
      );
      await waitPort(PORT);
      flow = await spawnFlow();
      acts = [];
      for (const k of ["1", "2"])
        acts.push(await forkWorker(`bullmq-act${k}`, "workers/bullmq-worker.mjs", { ...env, ROLE: "act" }));
      const connection = { host: "127.0.0.1", port: PORT };
      flows = new Queue("flows", { connection });
      held = new Queue("held", { connection });
      steps = new Queue("steps", { connection });
      flowEvents = new QueueEvents("flows", { connection });
      stepEvents = new QueueEvents("steps", { connection });
      fp = new FlowProducer({ connection });
      await Promise.all([flowEvents, stepEvents].map((e) => e.waitUntilReady()));
      await (await flows.add("x", { kind: "short", i: 0 })).waitUntilFinished(flowEvents);
    },
    async stop() {
      await Promise.allSettled([flows, held, steps, flowEvents, stepEvents, fp].map((c) => c?.close()));
      await stopChild(flow);
      for (const a of acts) await stopChild(a);
      await stopChild(redis);
    },
    async run(w, p, add) {
      const job = async (data) => (await flows.add("f", data, opts)).waitUntilFinished(flowEvents);
      if (w === "W1") {
        await add(
          "step job (updateData)",
          "in-process step",
          () =>
            M.sequential({
              n: p.n,
              key: uid("w1s"),
              go: (n, key) => job({ kind: "seqStep", n, key }),
              marks: (k) => flow.call("marks", k),
            }),
          "not replayed: position saved in job data",
        );
        await add("add + waitUntilFinished", "other process", () =>
          M.sequential({ n: p.n, key: uid("w1r"), go: (n, key) => job({ kind: "seqRpc", n, key }), marks }),
        );
      } else if (w === "W2") {
        await add("flow: parent with children", "other process", () =>
          M.fanout({
            n: p.n,
            key: uid("w2"),
            go: async (n, key) => {
              const r = await fp.add({
                name: "p",
                queueName: "flows",
                data: { kind: "parent" },
                children: Array.from({ length: n }, (_, i) => ({
                  name: "s",
                  queueName: "steps",
                  data: { i, key },
                })),
              });
              await r.job.waitUntilFinished(flowEvents);
            },
            marks,
          }),
        );
      } else if (w === "W3") {
        await add("step job (3 updateData)", "in-process step", () =>
          M.throughput({ ...p, one: (i) => job({ kind: "short", i }) }),
        );
        await add("nested flow of 3 jobs", "other process", () =>
          M.throughput({
            ...p,
            one: async (i) => {
              const r = await fp.add({
                name: "c",
                queueName: "steps",
                data: { i },
                children: [
                  {
                    name: "b",
                    queueName: "steps",
                    data: { i },
                    children: [{ name: "a", queueName: "steps", data: { i } }],
                  },
                ],
              });
              await r.job.waitUntilFinished(stepEvents);
            },
          }),
        );
      } else if (w === "W5") {
        const jobs = new Map();
        await add(
          "delayed job promoted",
          "",
          () => {
            const base = uid("w5");
            return M.signals({
              ...p,
              begin: async () => undefined,
              waiting: async (w, r) => {
                jobs.set(`${w}-${r}`, await held.add("h", { key: `${base}-${w}`, r }, { delay: 3600000 }));
              },
              send: (w, r) => jobs.get(`${w}-${r}`).promote(),
              woke: async (w, r) => (await box.wait("woke", `${base}-${w}`, r)).t,
            });
          },
          "nearest thing: no signals to a running job",
        );
      }
    },
  };
}
