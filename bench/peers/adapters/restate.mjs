import fs from "node:fs";
import path from "node:path";
import * as clients from "@restatedev/restate-sdk-clients";
import * as M from "../lib/measure.mjs";
import { DATA, forkWorker, pkgVersion, ROOT, rmrf, spawnLogged, stopChild, waitHttp } from "../lib/util.mjs";

const P = { node: 15122, ingress: 15180, admin: 15170, wf: 15110, act: 15111 };
export function create(_opts = {}) {
  const dir = path.join(DATA, "restate");
  let server,
    wf,
    act,
    ing,
    seq = 0;
  const run = Date.now().toString(36);
  const uid = (p) => `${p}-${run}-${seq++}`;
  const box = M.eventBox();
  const flows = () => ing.serviceClient({ name: "flows" });
  const spawnWf = (onEvent) =>
    forkWorker(
      "restate-wf",
      "workers/restate-worker.mjs",
      { ROLE: "wf", PORT: String(P.wf), RESTATE_LOGGING: "WARN", NODE_ENV: "production" },
      {
        onEvent: (m) => {
          box.on(m);
          onEvent?.(m);
        },
      },
    );
  return {
    name: "restate",
    version: `server ${pkgVersion("@restatedev/restate-server")}, sdk ${pkgVersion("@restatedev/restate-sdk")}`,
    durability:
      "single node, shipped defaults: replicated loglet (replication 1), log-server RocksDB WAL fsync on, 24 partitions, HTTP/2 bidirectional",
    async start() {
      rmrf(dir);
      fs.mkdirSync(dir, { recursive: true });
      // Only addresses, ports, paths and telemetry differ from the shipped defaults.
      const conf = `base-dir = "${dir}/store"\nbind-ip = "127.0.0.1"\nbind-port = ${P.node}\nlisten-mode = "tcp"\nadvertised-host = "127.0.0.1"\ndisable-telemetry = true\nnode-name = "n1"\nlog-filter = "warn"\nlog-disable-ansi-codes = true\n[ingress]\nbind-port = ${P.ingress}\n[admin]\nbind-port = ${P.admin}\n`;
      fs.writeFileSync(path.join(dir, "restate.toml"), conf);
      const bin = path.join(ROOT, "node_modules/@restatedev/restate-server-linux-x64/bin/restate-server");
      server = spawnLogged("restate-server", bin, ["--no-logo", "-c", path.join(dir, "restate.toml")], {
        cwd: dir,
        env: { ...process.env, DO_NOT_TRACK: "1" },
      });
      await waitHttp(`http://127.0.0.1:${P.admin}/health`, 60000);
      await waitHttp(`http://127.0.0.1:${P.ingress}/restate/health`, 60000);
      wf = await spawnWf();
      act = await forkWorker("restate-act", "workers/restate-worker.mjs", {
        ROLE: "act",
        PORT: String(P.act),
        RESTATE_LOGGING: "WARN",
        NODE_ENV: "production",
      });
      for (const p of [P.wf, P.act]) {
        const r = await fetch(`http://127.0.0.1:${P.admin}/deployments`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ uri: `http://127.0.0.1:${p}` }),
        });
        if (!r.ok) throw new Error(`register: ${r.status} ${await r.text()}`);
      }
      ing = clients.connect({ url: `http://127.0.0.1:${P.ingress}` });
      await flows().short({ i: 0 });
      await flows().shortCall({ i: 0 });
    },
    async stop() {
      await stopChild(wf);
      await stopChild(act);
      await stopChild(server, { grace: 20000 });
    },
    async run(w, p, add) {
      if (w === "W1") {
        await add("ctx.run", "in-process step", () =>
          M.sequential({
            n: p.n,
            key: uid("w1r"),
            go: (n, key) => flows().seqRun({ n, key }),
            marks: (k) => wf.call("marks", k),
          }),
        );
        await add("service call", "other process", () =>
          M.sequential({
            n: p.n,
            key: uid("w1c"),
            go: (n, key) => flows().seqCall({ n, key }),
            marks: (k) => act.call("marks", k),
          }),
        );
      } else if (w === "W2") {
        await add("ctx.run", "in-process step", () =>
          M.fanout({
            n: p.n,
            key: uid("w2r"),
            go: (n, key) => flows().fanRun({ n, key }),
            marks: (k) => wf.call("marks", k),
          }),
        );
        await add("service call", "other process", () =>
          M.fanout({
            n: p.n,
            key: uid("w2c"),
            go: (n, key) => flows().fanCall({ n, key }),
            marks: (k) => act.call("marks", k),
          }),
        );
      } else if (w === "W3") {
        await add("service handler, call", "in-process step", () =>
          M.throughput({ ...p, one: (i) => flows().short({ i }) }),
        );
        await add("service handler, 3 service calls", "other process", () =>
          M.throughput({ ...p, one: (i) => flows().shortCall({ i }) }),
        );
      } else if (w === "W5") {
        await add("awakeable via ingress", "", () => {
          const base = uid("w5a");
          const ids = new Map();
          return M.signals({
            ...p,
            begin: async (w) => {
              const e = flows().awaiter({ key: `${base}-${w}`, rounds: p.rounds });
              return () => e;
            },
            waiting: async (w, r) => ids.set(r, (await box.wait("waiting", `${base}-${w}`, r)).awk),
            send: (_w, r) => ing.resolveAwakeable(ids.get(r), { r }),
            woke: async (w, r) => (await box.wait("woke", `${base}-${w}`, r)).t,
          });
        });
      } else if (w === "W6") {
        await add("service handler", "kill -9 of the service process", () =>
          M.recovery({
            worker: wf,
            key: uid("w6"),
            start: async (key) => {
              const e = flows().slow({ n: p.steps, key, ms: p.stepMs });
              e.catch(() => undefined);
              return () => e;
            },
            respawn: async (onEvent) => {
              wf = await spawnWf(onEvent);
            },
            killAt: p.killAt,
          }),
        );
      }
    },
  };
}
