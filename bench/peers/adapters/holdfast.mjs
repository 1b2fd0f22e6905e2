// Holdfast: a nats-server of its own, one orchestrator, one watcher, one worker, each a process.
// HOLDFAST_DIR: its folder, built. NATS_SERVER: the server's binary. Variants: per-instance (default), shared, always
// (per-instance, every write flushed before its acknowledgement), always-shared.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import * as M from "../lib/measure.mjs";
import {
  DATA,
  forkWorker,
  ROOT,
  rmrf,
  round,
  sleep,
  spawnLogged,
  stopChild,
  waitPort,
} from "../lib/util.mjs";

const PORT = 15222,
  HTTP = 15223;
const root = path.resolve(process.env.PEERS_HOLDFAST ?? process.env.HOLDFAST_DIR ?? path.join(ROOT, "../.."));
process.env.PEERS_HOLDFAST = root;
delete process.env.HOLDFAST_DIR; // the services refuse unknown names with their prefix
const { Client } = await import(pathToFileURL(path.join(root, "dist/shared/sdk/index.js")).href);
const version = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8")).version;

/** What the server counted so far: messages in and out, API requests, stored messages by kind of stream. */
async function counters() {
  const [v, j] = await Promise.all(
    ["varz", "jsz?streams=true&accounts=true"].map(async (p) =>
      (await fetch(`http://127.0.0.1:${HTTP}/${p}`)).json(),
    ),
  );
  const stored = {};
  for (const a of j.account_details ?? [])
    for (const s of a.stream_detail ?? []) {
      const kind = /^(H|HISTORY|SHARD)[-_]/i.test(s.name) ? "history" : s.name;
      stored[kind] = (stored[kind] ?? 0) + s.state.last_seq;
    }
  return {
    in_msgs: v.in_msgs,
    out_msgs: v.out_msgs,
    in_bytes: v.in_bytes,
    out_bytes: v.out_bytes,
    api: j.api?.total ?? 0,
    streams: j.streams,
    consumers: j.consumers,
    stored,
  };
}
function difference(a, b, units) {
  const per = (x) => round(x / units, 3);
  const stored = {};
  let sum = 0;
  for (const k of Object.keys(b.stored)) {
    const d = b.stored[k] - (a.stored[k] ?? 0);
    if (d) {
      stored[k] = per(d);
      sum += d;
    }
  }
  return {
    units,
    in_msgs: per(b.in_msgs - a.in_msgs),
    out_msgs: per(b.out_msgs - a.out_msgs),
    in_bytes: per(b.in_bytes - a.in_bytes),
    out_bytes: per(b.out_bytes - a.out_bytes),
    api: per(b.api - a.api),
    stored_msgs: per(sum),
    stored,
    streams: b.streams - a.streams,
    consumers: b.consumers - a.consumers,
  };
}
/** CPU time of a process in ms. */
const cpuOf = (pid) => {
  try {
    const s = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    const f = s.slice(s.lastIndexOf(")") + 2).split(" ");
    return (+f[11] + +f[12]) * 10;
  } catch {
    return 0;
  }
};

export function create({ variant = "per-instance" } = {}) {
  const always = variant.startsWith("always");
  const layout = variant.endsWith("shared") ? "shared" : "per-instance";
  const dir = path.join(DATA, "holdfast");
  let nats,
    orchestrator,
    watcher,
    workers = [],
    client,
    seq = 0;
  const run = Date.now().toString(36);
  const uid = (p) => `${p}-${run}-${seq++}`;
  const box = M.eventBox();
  const env = {
    NATS_URL: `nats://127.0.0.1:${PORT}`,
    HISTORY_LAYOUT: layout,
    HISTORY_MAX_STREAMS: "10000",
    LOG_LEVEL: "warn",
    NODE_ENV: "production",
    ARCHIVE_AFTER: "1h",
  };
  const prof = process.env.PEERS_PROF ? ["--cpu-prof", `--cpu-prof-dir=${process.env.PEERS_PROF}`] : [];
  const service = (role, more = {}, onEvent) => {
    const keep = Object.fromEntries(
      Object.entries({ ...env, ...more })
        .filter(([k]) => role === "worker" || !k.startsWith("WORKER_"))
        .filter(([k]) => role === "watcher" || !k.startsWith("ARCHIVE_")),
    );
    return forkWorker(
      `holdfast-${role}`,
      "workers/holdfast-service.mjs",
      { ...keep, PEERS_HOLDFAST: root, PEERS_ROLE: role },
      {
        onEvent: (m) => {
          box.on(m);
          onEvent?.(m);
        },
        execArgv: prof,
      },
    );
  };
  const worker = (k, onEvent) => service("worker", { WORKER_NODE_ID: `w${k}` }, onEvent);
  const marks = async (k) => (await Promise.all(workers.map((w) => w.call("marks", k)))).flat();
  const result = async (name, input) => (await client.start(name, input)).result();
  /** Adds what the server stored and passed on, and CPU by process, per unit. */
  const counted = (units, fn) => async () => {
    const pids = {
      nats: nats.pid,
      orchestrator: orchestrator.pid,
      worker: workers[0].pid,
      watcher: watcher.pid,
      client: process.pid,
    };
    const cpu0 = Object.fromEntries(Object.entries(pids).map(([k, p]) => [k, cpuOf(p)]));
    const before = await counters();
    const row = await fn();
    const cpu_us = Object.fromEntries(
      Object.entries(pids).map(([k, p]) => [k, round(((cpuOf(p) - cpu0[k]) * 1000) / units, 0)]),
    );
    await sleep(600); // summaries may come a moment later
    return { ...row, cpu_us, nats: difference(before, await counters(), units) };
  };
  return {
    name: `holdfast-${variant}`,
    version: `holdfast ${version}, nats-server ${process.env.NATS_VERSION ?? ""}`.trim(),
    durability: `JetStream file storage, R1, sync_interval ${always ? "always" : "2m (an acknowledged write survives the death of any process, a power cut may lose up to 2 min)"}; history ${layout}`,
    async start() {
      rmrf(dir);
      fs.mkdirSync(dir, { recursive: true });
      const conf = path.join(dir, "nats.conf");
      fs.writeFileSync(
        conf,
        `server_name: "peers"\nhost: "127.0.0.1"\nport: ${PORT}\nhttp: "127.0.0.1:${HTTP}"\njetstream {\n  store_dir: ${JSON.stringify(path.join(dir, "store"))}\n  sync_interval: ${always ? "always" : '"2m"'}\n  limits { default_max_consumers: -1 }\n}\n`,
      );
      nats = spawnLogged("holdfast-nats", process.env.NATS_SERVER ?? "nats-server", ["-c", conf], {
        cwd: dir,
      });
      await waitPort(PORT);
      orchestrator = await service("orchestrator");
      watcher = await service("watcher");
      workers = [await worker(0)];
      client = await Client.connect({ url: `nats://127.0.0.1:${PORT}`, name: "peers" });
      for (let i = 0; i < 5; i++) await result("short", { i });
    },
    async stop() {
      await client?.close();
      for (const w of workers) await stopChild(w);
      await stopChild(watcher);
      await stopChild(orchestrator);
      await stopChild(nats);
    },
    async run(w, p, add) {
      if (always && !["W1", "W2", "W3", "W5"].includes(w)) return;
      if (w === "W1") {
        await add(
          "activity",
          "other process",
          counted(p.n, () =>
            M.sequential({ n: p.n, key: uid("w1"), go: (n, key) => result("seq", { n, key }), marks }),
          ),
        );
        await add(
          "local activity",
          "in-process step",
          counted(p.n, () =>
            M.sequential({
              n: p.n,
              key: uid("w1l"),
              go: (n, key) => result("seq-local", { n, key }),
              marks: (key) => orchestrator.call("marks", key),
            }),
          ),
        );
      } else if (w === "W2") {
        await add(
          "activity",
          "other process",
          counted(p.n, () =>
            M.fanout({ n: p.n, key: uid("w2"), go: (n, key) => result("fan", { n, key }), marks }),
          ),
        );
      } else if (w === "W3") {
        await add(
          "start + result, 3 activities",
          "other process",
          counted(p.n, () => M.throughput({ ...p, one: (i) => result("short", { i }) })),
        );
        await add(
          "start + result, 3 activities, again",
          "other process",
          counted(p.n, () => M.throughput({ ...p, one: (i) => result("short", { i }) })),
          "the same again, engine warm",
        );
        await add(
          "start + result, 3 local activities",
          "in-process step",
          counted(p.n, () => M.throughput({ ...p, one: (i) => result("short-local", { i }) })),
        );
      } else if (w === "W5") {
        const wake = (send) =>
          counted(p.workflows * p.rounds, () => {
            const base = uid("w5"),
              handles = new Map();
            return M.signals({
              ...p,
              begin: async (w) => {
                const h = await client.start("awaiter", { key: `${base}-${w}`, rounds: p.rounds });
                handles.set(w, h);
                return () => h.result();
              },
              waiting: (w, r) => box.wait("waiting", `${base}-${w}`, r),
              send: (w, r) => send(handles.get(w), r),
              woke: async (w, r) => (await box.wait("woke", `${base}-${w}`, r)).t,
            });
          });
        await add(
          "waitForSignal / client.signal",
          "",
          wake((h, r) => h.signal(`r${r}`, { r })),
        );
      } else if (w === "W6") {
        await add(
          "activity, worker restarted",
          "kill -9 of the worker process",
          () =>
            M.recovery({
              worker: workers[0],
              key: uid("w6"),
              start: async (key) => {
                const handle = await client.start("slow", { n: p.steps, key, ms: p.stepMs, of: 1 });
                return () => handle.result();
              },
              respawn: async (onEvent) => {
                workers[0] = await worker(0, onEvent);
              },
              killAt: p.killAt,
            }),
          "restarted at once under the same node id",
        );
      }
    },
  };
}
