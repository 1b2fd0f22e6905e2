// Shared by the driver and the adapters: clock, statistics, child processes.
import { fork, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
export const DATA = process.env.PEERS_DATA ?? path.join(ROOT, "data");
const LOGS = path.join(DATA, "logs");

// CLOCK_MONOTONIC in milliseconds; comparable between processes on one host.
export const now = () => Number(process.hrtime.bigint()) / 1e6;
export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

export function withTimeout(promise, ms, what) {
  let t;
  return Promise.race([
    promise.finally(() => clearTimeout(t)),
    new Promise((_, rej) => {
      t = setTimeout(() => rej(new Error(`timeout after ${ms} ms: ${what}`)), ms);
    }),
  ]);
}

export function stats(values) {
  if (!values.length) return { n: 0 };
  const a = Float64Array.from(values).sort();
  const q = (p) => a[Math.min(a.length - 1, Math.floor(p * a.length))];
  let sum = 0;
  for (const v of a) sum += v;
  const r = (x) => Math.round(x * 1000) / 1000;
  return {
    n: a.length,
    mean: r(sum / a.length),
    p50: r(q(0.5)),
    p95: r(q(0.95)),
    p99: r(q(0.99)),
    max: r(a[a.length - 1]),
  };
}
export const round = (x, d = 2) => Math.round(x * 10 ** d) / 10 ** d;

/** gaps between consecutive timestamps */
export const gaps = (ts) => ts.slice(1).map((t, i) => t - ts[i]);

/** Run n tasks with at most `concurrency` under way; returns latencies and wall time. */
export async function pool(n, concurrency, fn) {
  const lat = new Array(n);
  let next = 0;
  const t0 = now();
  await Promise.all(
    Array.from({ length: Math.min(concurrency, n) }, async () => {
      for (;;) {
        const i = next++;
        if (i >= n) return;
        const s = now();
        await fn(i);
        lat[i] = now() - s;
      }
    }),
  );
  return { lat, wall: now() - t0 };
}

const children = new Set();
function track(child, label) {
  children.add(child);
  child.label = label;
  child.once("exit", () => children.delete(child));
  return child;
}
export function spawnLogged(label, cmd, args, opts = {}) {
  fs.mkdirSync(LOGS, { recursive: true });
  const fd = fs.openSync(path.join(LOGS, `${label}.log`), "a");
  const child = spawn(cmd, args, { stdio: ["ignore", fd, fd], ...opts });
  fs.closeSync(fd);
  return track(child, label);
}
/** Fork a node worker with an IPC channel. Resolves once it sent {ready:true}. */
export async function forkWorker(
  label,
  file,
  env = {},
  { execPath, readyTimeout = 60000, execArgv = [], onEvent } = {},
) {
  fs.mkdirSync(LOGS, { recursive: true });
  const fd = fs.openSync(path.join(LOGS, `${label}.log`), "a");
  const child = track(
    fork(path.join(ROOT, file), [], {
      env: { ...process.env, ...env },
      stdio: ["ignore", fd, fd, "ipc"],
      execPath: execPath ?? process.execPath,
      execArgv,
      serialization: "advanced",
    }),
    label,
  );
  fs.closeSync(fd);
  child.events = [];
  child.listeners_ = new Set(onEvent ? [onEvent] : []);
  child.pending = new Map();
  let nextId = 1;
  child.on("message", (m) => {
    if (m?.reply) {
      const p = child.pending.get(m.reply);
      if (p) {
        child.pending.delete(m.reply);
        m.error ? p.reject(new Error(m.error)) : p.resolve(m.value);
      }
    } else if (m?.ev) {
      for (const l of [...child.listeners_]) l(m);
    }
  });
  child.once("exit", (code, sig) => {
    for (const p of child.pending.values()) p.reject(new Error(`worker ${label} exited ${code ?? sig}`));
    child.pending.clear();
  });
  child.call = (op, ...args) =>
    new Promise((resolve, reject) => {
      const id = nextId++;
      child.pending.set(id, { resolve, reject });
      child.send({ call: id, op, args }, (e) => {
        if (e) {
          child.pending.delete(id);
          reject(e);
        }
      });
    });
  child.onEvent = (fn) => {
    child.listeners_.add(fn);
    return () => child.listeners_.delete(fn);
  };
  await withTimeout(
    new Promise((res, rej) => {
      const off = child.onEvent((m) => {
        if (m.ev === "ready") {
          off();
          res();
        }
      });
      child.once("exit", (c, s) =>
        rej(new Error(`worker ${label} exited before ready: ${c ?? s} (see data/logs/${label}.log)`)),
      );
    }),
    readyTimeout,
    `${label} ready`,
  );
  return child;
}
export async function stopChild(child, { signal = "SIGTERM", grace = 8000 } = {}) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((r) => child.once("exit", r));
  try {
    child.kill(signal);
  } catch {
    // gone already
  }
  const ok = await Promise.race([gone.then(() => true), sleep(grace).then(() => false)]);
  if (!ok) {
    try {
      child.kill("SIGKILL");
    } catch {
      // gone already
    }
    await gone;
  }
}
/** Only the children this driver itself started, by pid. */
export async function stopAllChildren() {
  await Promise.all([...children].map((c) => stopChild(c, { grace: 5000 })));
}

export async function waitPort(port, host = "127.0.0.1", timeout = 30000) {
  const t0 = now();
  for (;;) {
    const ok = await new Promise((res) => {
      const s = net.connect({ port, host }, () => {
        s.destroy();
        res(true);
      });
      s.on("error", () => res(false));
    });
    if (ok) return now() - t0;
    if (now() - t0 > timeout) throw new Error(`port ${port} not open after ${timeout} ms`);
    await sleep(50);
  }
}
export async function waitHttp(url, timeout = 30000, ok = (r) => r.ok) {
  const t0 = now();
  for (;;) {
    try {
      const r = await fetch(url);
      if (ok(r)) return now() - t0;
    } catch {
      // gone already
    }
    if (now() - t0 > timeout) throw new Error(`${url} not ready after ${timeout} ms`);
    await sleep(100);
  }
}

export function rmrf(dir) {
  fs.rmSync(dir, { recursive: true, force: true });
}
export function pkgVersion(name) {
  try {
    return JSON.parse(fs.readFileSync(path.join(ROOT, "node_modules", name, "package.json"), "utf8")).version;
  } catch {
    return "?";
  }
}
