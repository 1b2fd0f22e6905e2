// DBOS Transact application: functions registered as workflows, DBOS.runStep for steps, a queue for work on another process.
import { DBOS } from "@dbos-inc/dbos-sdk";
import * as M from "../lib/measure.mjs";
import { emit, mark, ready, serveCalls, sleep } from "../lib/worker.mjs";

const role = process.env.ROLE; // 'app' runs the workflows, 'act' takes only the queues

const act = DBOS.registerWorkflow(
  async (i, key) => {
    if (key) mark(key);
    return { i };
  },
  { name: "act" },
);
const seqStep = DBOS.registerWorkflow(
  async (n, key) => {
    let last;
    for (let i = 0; i < n; i++)
      last = await DBOS.runStep(
        async () => {
          mark(key);
          return { i };
        },
        { name: "step" },
      );
    return last;
  },
  { name: "seqStep" },
);
const seqQueue = DBOS.registerWorkflow(
  async (n, key, queueName, pollingIntervalMs) => {
    let last;
    for (let i = 0; i < n; i++)
      last = await (await DBOS.startWorkflow(act, { queueName })(i, key)).getResult(
        pollingIntervalMs ? { pollingIntervalMs } : undefined,
      );
    return last;
  },
  { name: "seqQueue" },
);
const fanStep = DBOS.registerWorkflow(
  async (n, key) => {
    const ps = [];
    for (let i = 0; i < n; i++)
      ps.push(
        DBOS.runStep(
          async () => {
            mark(key);
            return { i };
          },
          { name: "step" },
        ),
      );
    return (await Promise.allSettled(ps)).length;
  },
  { name: "fanStep" },
);
const fanQueue = DBOS.registerWorkflow(
  async (n, key, queueName, pollingIntervalMs) => {
    const hs = [];
    for (let i = 0; i < n; i++) hs.push(await DBOS.startWorkflow(act, { queueName })(i, key));
    let got = 0;
    for (const h of hs) {
      await h.getResult(pollingIntervalMs ? { pollingIntervalMs } : undefined);
      got++;
    }
    return got;
  },
  { name: "fanQueue" },
);
const short = DBOS.registerWorkflow(
  async (i) => {
    const a = await DBOS.runStep(async () => ({ i }), { name: "a" });
    const b = await DBOS.runStep(async () => a, { name: "b" });
    return DBOS.runStep(async () => b, { name: "c" });
  },
  { name: "short" },
);
const awaiter = DBOS.registerWorkflow(
  async (key, rounds) => {
    for (let r = 0; r < rounds; r++) {
      await DBOS.runStep(
        async () => {
          emit("waiting", { key, i: r });
        },
        { name: "publish" },
      );
      await DBOS.recv(`r${r}`, { timeoutSeconds: 300 });
      emit("woke", { key, i: r });
    }
    return rounds;
  },
  { name: "awaiter" },
);
const slow = DBOS.registerWorkflow(
  async (n, key, ms) => {
    for (let i = 0; i < n; i++)
      await DBOS.runStep(
        async () => {
          emit("step", { key, i });
          await sleep(ms);
          return { i };
        },
        { name: "slow" },
      );
    return n;
  },
  { name: "slow" },
);

DBOS.setConfig({
  name: "bench",
  systemDatabaseUrl: process.env.PGURL,
  logLevel: "warn",
  executorID: role,
  listenQueues: role === "app" ? ["starts"] : ["steps-fast"],
});
await DBOS.launch();
if (role === "act") {
  await DBOS.registerQueue("steps-fast", { minPollingIntervalMs: 10 });
  await DBOS.registerQueue("starts");
}
serveCalls({
  seqStep: (n, key) => seqStep(n, key),
  seqQueue: (n, key, q, p) => seqQueue(n, key, q, p),
  fanStep: (n, key) => fanStep(n, key),
  fanQueue: (n, key, q, p) => fanQueue(n, key, q, p),
  shorts: (p) =>
    M.throughput({
      ...p,
      one: async (i) => {
        const h = await DBOS.startWorkflow(short)(i);
        await h.getResult();
      },
    }),
  startAwaiter: async (key, rounds) => {
    const h = await DBOS.startWorkflow(awaiter, { workflowID: key })(key, rounds);
    return h.workflowID;
  },
  startSlow: async (n, key, ms) => {
    const h = await DBOS.startWorkflow(slow, { workflowID: key })(n, key, ms);
    return h.workflowID;
  },
  result: (id) => DBOS.getResult(id),
});
ready();
