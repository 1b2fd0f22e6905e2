import { DBOSClient } from "@dbos-inc/dbos-sdk";
import * as M from "../lib/measure.mjs";
import { startPg } from "../lib/pg.mjs";
import { forkWorker, pkgVersion, stopChild } from "../lib/util.mjs";

export function create({ small } = {}) {
  let pg,
    app,
    act,
    client,
    seq = 0;
  const run = Date.now().toString(36);
  const uid = (p) => `${p}-${run}-${seq++}`;
  const box = M.eventBox();
  const spawnApp = (onEvent) =>
    forkWorker(
      "dbos-app",
      "workers/dbos-worker.mjs",
      { ROLE: "app", PGURL: pg.url, NODE_ENV: "production" },
      {
        onEvent: (m) => {
          box.on(m);
          onEvent?.(m);
        },
      },
    );
  return {
    name: "dbos",
    version: `sdk ${pkgVersion("@dbos-inc/dbos-sdk")}, PostgreSQL 15`,
    durability:
      "PostgreSQL initdb defaults (fsync on, synchronous_commit on); SDK defaults: pool 10, LISTEN/NOTIFY on, queue and result polling 1000 ms",
    async start() {
      pg = await startPg("dbos", 15432);
      act = await forkWorker("dbos-act", "workers/dbos-worker.mjs", {
        ROLE: "act",
        PGURL: pg.url,
        NODE_ENV: "production",
      });
      app = await spawnApp();
      client = await DBOSClient.create({ systemDatabaseUrl: pg.url, applicationName: "bench" });
      await app.call("shorts", { n: 5, concurrency: 1 });
    },
    async stop() {
      await client?.destroy();
      await stopChild(app);
      await stopChild(act);
      await pg?.stop();
    },
    async run(w, p, add) {
      if (w === "W1") {
        await add("DBOS.runStep", "in-process step", () =>
          M.sequential({
            n: p.n,
            key: uid("w1"),
            go: (n, key) => app.call("seqStep", n, key),
            marks: (k) => app.call("marks", k),
          }),
        );
        await add(
          "child workflow on a queue, 10 ms polling",
          "other process",
          () =>
            M.sequential({
              n: small ? 20 : 200, // its figure is per step
              key: uid("w1f"),
              go: (n, key) => app.call("seqQueue", n, key, "steps-fast", 10),
              marks: (k) => act.call("marks", k),
            }),
          "minPollingIntervalMs=10, getResult pollingIntervalMs=10",
        );
      } else if (w === "W2") {
        await add("DBOS.runStep", "in-process step", () =>
          M.fanout({
            n: p.n,
            key: uid("w2"),
            go: (n, key) => app.call("fanStep", n, key),
            marks: (k) => app.call("marks", k),
          }),
        );
        await add("child workflow on a queue, 10 ms polling", "other process", () =>
          M.fanout({
            n: p.n,
            key: uid("w2f"),
            go: (n, key) => app.call("fanQueue", n, key, "steps-fast", 10),
            marks: (k) => act.call("marks", k),
          }),
        );
      } else if (w === "W3") {
        await add(
          "startWorkflow in the app",
          "in-process step",
          () => app.call("shorts", { n: p.n, concurrency: p.concurrency }),
          "started and awaited inside the application process, as documented",
        );
      } else if (w === "W5") {
        await add(
          "recv / client.send",
          "",
          () => {
            const base = uid("w5");
            return M.signals({
              ...p,
              begin: async (w) => {
                const id = `${base}-${w}`;
                await app.call("startAwaiter", id, p.rounds);
                return () => app.call("result", id);
              },
              waiting: (w, r) => box.wait("waiting", `${base}-${w}`, r),
              send: (w, r) => client.send(`${base}-${w}`, { r }, `r${r}`),
              woke: async (w, r) => (await box.wait("woke", `${base}-${w}`, r)).t,
            });
          },
          "DBOSClient in another process",
        );
      } else if (w === "W6") {
        await add(
          "application process",
          "kill -9 of the application process",
          () =>
            M.recovery({
              worker: app,
              others: [act],
              key: uid("w6"),
              start: async (key) => {
                await app.call("startSlow", p.steps, key, p.stepMs);
                return () => app.call("result", key);
              },
              respawn: async (onEvent) => {
                app = await spawnApp(onEvent);
              },
              killAt: p.killAt,
            }),
          "same executor id; DBOS.launch() puts the workflow back on the internal queue, any process of the application takes it",
        );
      }
    },
  };
}
