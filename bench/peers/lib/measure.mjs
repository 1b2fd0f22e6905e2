// Workload drivers shared by the adapters. An adapter hands in small functions; the timing is done here, the same way for all.
import { gaps, now, pool, round, sleep, stats, withTimeout } from "./util.mjs";

/** W1: `go(n, key)` runs one workflow of n sequential steps; `marks(key)` returns the step execution times. */
export async function sequential({ n, go, marks, key, timeout = 900000 }) {
  const t0 = now();
  await withTimeout(go(n, key), timeout, `W1 ${key}`);
  const total = now() - t0;
  const ts = (await marks(key)).sort((a, b) => a - b);
  const g = stats(gaps(ts));
  return {
    steps: n,
    total_ms: round(total),
    per_step_ms: round(total / n, 3),
    gap_mean_ms: g.mean,
    gap_p50_ms: g.p50,
    gap_p99_ms: g.p99,
    first_to_last_ms: ts.length ? round(ts[ts.length - 1] - ts[0]) : undefined,
    executions: ts.length,
  };
}
/** W2: one workflow, n parallel steps, joined. */
export async function fanout({ n, go, marks, key, timeout = 900000 }) {
  const t0 = now();
  await withTimeout(go(n, key), timeout, `W2 ${key}`);
  const total = now() - t0;
  const ts = marks ? (await marks(key)).sort((a, b) => a - b) : [];
  return {
    steps: n,
    total_ms: round(total),
    per_step_ms: round(total / n, 3),
    steps_per_s: round((n / total) * 1000, 0),
    first_step_ms: ts.length ? round(ts[0] - t0) : undefined,
    last_step_ms: ts.length ? round(ts[ts.length - 1] - t0) : undefined,
    executions: ts.length || undefined,
  };
}
/** W3: n short workflows, `one(i)` resolves when workflow i completed. */
export async function throughput({ n, concurrency, one, timeout = 900000 }) {
  const { lat, wall } = await withTimeout(pool(n, concurrency, one), timeout, "W3");
  const s = stats(lat);
  return {
    workflows: n,
    concurrency,
    wall_ms: round(wall),
    workflows_per_s: round((n / wall) * 1000, 1),
    lat_mean_ms: s.mean,
    lat_p50_ms: s.p50,
    lat_p95_ms: s.p95,
    lat_p99_ms: s.p99,
    lat_max_ms: s.max,
  };
}
/**
 * W5: `begin(w)` starts workflow w that waits `rounds` times; `waiting(w, r)` resolves when it is about to wait for
 * round r; `send(w, r)` signals; `woke(w, r)` resolves to the worker's timestamp taken right after the wait returned.
 */
export async function signals({
  workflows,
  rounds,
  begin,
  waiting,
  send,
  woke,
  settle = 5,
  timeout = 600000,
}) {
  const lat = [],
    sendLat = [];
  await withTimeout(
    (async () => {
      for (let w = 0; w < workflows; w++) {
        const done = await begin(w);
        for (let r = 0; r < rounds; r++) {
          await waiting(w, r);
          await sleep(settle);
          const t0 = now();
          const p = send(w, r).then(() => sendLat.push(now() - t0));
          const t1 = await woke(w, r);
          await p;
          lat.push(t1 - t0);
        }
        await done?.();
      }
    })(),
    timeout,
    "W5",
  );
  const s = stats(lat),
    a = stats(sendLat);
  return {
    rounds: lat.length,
    wake_mean_ms: s.mean,
    wake_p50_ms: s.p50,
    wake_p95_ms: s.p95,
    wake_p99_ms: s.p99,
    wake_max_ms: s.max,
    send_ack_p50_ms: a.p50,
  };
}
/** Collects worker events so that waiting()/woke() can be awaited whether they came before or after. */
export function eventBox() {
  const have = new Map(),
    want = new Map();
  const k = (m) => `${m.ev}:${m.key}:${m.i}`;
  return {
    on: (m) => {
      const key = k(m);
      const w = want.get(key);
      if (w) {
        want.delete(key);
        w(m);
      } else if (!have.has(key)) have.set(key, m);
    },
    wait: (ev, key, i, timeout = 120000) => {
      const kk = k({ ev, key, i });
      const m = have.get(kk);
      if (m) {
        have.delete(kk);
        return Promise.resolve(m);
      }
      return withTimeout(new Promise((r) => want.set(kk, r)), timeout, kk);
    },
  };
}
/**
 * W6: start a workflow of slow steps, SIGKILL the worker once step `killAt` ran, respawn at once.
 * `start(key)` starts it (not awaiting the end) and returns a function awaiting the end.
 * `respawn(onEvent)` starts the replacement and resolves when it has reported ready.
 */
export async function recovery({ worker, others = [], start, respawn, key, killAt = 40, timeout = 180000 }) {
  let last = -1;
  const reached = new Promise((res) =>
    worker.onEvent((m) => {
      if (m.ev === "step" && m.key === key) {
        last = Math.max(last, m.i);
        if (m.i >= killAt) res();
      }
    }),
  );
  const end = await start(key);
  await withTimeout(reached, 60000, "W6 reach kill point");
  const gone = new Promise((r) => worker.once("exit", r));
  const tKill = now();
  worker.kill("SIGKILL");
  await gone;
  let first, readyAt, resolveFirst;
  const seen = [];
  const got = new Promise((r) => (resolveFirst = r));
  const see = (m) => {
    if (m.ev === "step" && m.key === key) {
      seen.push(m.i);
      if (!first) {
        first = m;
        resolveFirst();
      }
    }
  };
  const offs = others.map((o) => o.onEvent(see)); // another process of the same pool may take the work over
  const p = respawn((m) => {
    if (m.ev === "ready" && !readyAt) readyAt = m.t;
    see(m);
  });
  p.catch(() => undefined);
  await withTimeout(got, timeout, "W6 progress after restart");
  await p;
  await withTimeout(end(), timeout, "W6 completion");
  for (const off of offs) off();
  return {
    kill_to_progress_ms: round(first.t - tKill),
    worker_ready_ms: round((readyAt ?? first.t) - tKill),
    ready_to_progress_ms: round(first.t - (readyAt ?? first.t)),
    first_step_after: first.i,
    last_step_before: last,
    reexecuted: seen.filter((i) => i <= last).length,
    taken_by: others.some((o) => o.pid === first.pid) ? "other worker" : "restarted worker",
  };
}
