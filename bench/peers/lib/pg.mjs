// A private PostgreSQL cluster with initdb's own settings (fsync, synchronous_commit and full_page_writes on).
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import pg from "pg";
import { DATA, rmrf, sleep, spawnLogged, stopChild, waitPort } from "./util.mjs";

const bin = (n) =>
  ["/usr/local/bin", "/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/17/bin"]
    .map((d) => path.join(d, n))
    .find((f) => fs.existsSync(f)) ?? n;
function account() {
  const l = fs
    .readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((x) => x.startsWith("postgres:"));
  if (!l) throw new Error("no postgres account");
  const [, , uid, gid] = l.split(":");
  return process.getuid() === 0 ? { uid: +uid, gid: +gid } : {};
}
export async function startPg(label, port, { maxConnections } = {}) {
  const dir = path.join(DATA, `pg-${label}`);
  rmrf(dir);
  fs.mkdirSync(dir, { recursive: true });
  const who = account();
  if (who.uid) fs.chownSync(dir, who.uid, who.gid);
  const r = spawnSync(
    bin("initdb"),
    ["-D", dir, "-A", "trust", "-U", "postgres", "--locale=C.UTF-8", "-E", "UTF8"],
    { ...who, encoding: "utf8", cwd: "/tmp" },
  );
  if (r.status !== 0) throw new Error(`initdb: ${r.stderr}`);
  const args = [
    "-D",
    dir,
    "-c",
    "listen_addresses=127.0.0.1",
    "-c",
    `port=${port}`,
    "-c",
    "unix_socket_directories=",
  ];
  if (maxConnections) args.push("-c", `max_connections=${maxConnections}`);
  const child = spawnLogged(`pg-${label}`, bin("postgres"), args, { ...who, cwd: "/tmp" });
  await waitPort(port);
  const url = (db) => `postgresql://postgres@127.0.0.1:${port}/${db}`;
  for (let i = 0; ; i++) {
    try {
      const c = new pg.Client(url("postgres"));
      await c.connect();
      await c.query("create database bench");
      await c.end();
      break;
    } catch (e) {
      if (i > 50) throw e;
      await sleep(100);
    }
  }
  return {
    child,
    dir,
    port,
    url: url("bench"),
    pid: child.pid,
    stop: () => stopChild(child, { signal: "SIGINT", grace: 15000 }),
  };
}
