/**
 * The way of a new user, with nothing but the package: an application by `holdfast init`, its test, `dev`, a start, the
 * tutorial's second page (kill the worker yourself), and the result.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";

const root = resolve(import.meta.dirname, "../..");
const patienceMs = 60_000;

/** Without what the surroundings of this test may have set: a new user has none of it. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(NATS_|HOLDFAST_|WORKER_|GATEWAY_|npm_)/.test(name)),
);

export interface NewUser {
  /** Where the application is made. */
  folder: string;
  /** A folder in whose node_modules the package is. */
  installed: string;
  /** What `package.json` names as the version of holdfast. */
  version: string;
  /** Does what `npm install` in the application's folder does. */
  install: (shop: string) => void;
}

export async function newUserPath({ folder, installed, version, install }: NewUser): Promise<void> {
  const shop = join(folder, "shop");
  const run = (command: string, args: string[], cwd: string): string => {
    process.stdout.write(`${command} ${args.join(" ")}\n`);
    return execFileSync(command, args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  };
  run(join(installed, "node_modules/.bin/holdfast"), ["init", "shop", "--holdfast", version], folder);
  install(shop);
  run("npm", ["run", "check"], shop);
  run("npm", ["test"], shop);

  const holdfast = (...args: string[]) => run(join(shop, "node_modules/.bin/holdfast"), args, shop);
  const roles = process.env.HOLDFAST_TEST_ROLES === "on" ? ["--", "--roles"] : [];
  const dev = spawn("npm", ["run", "dev", ...roles], {
    cwd: shop,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let said = "";
  for (const stream of [dev.stdout, dev.stderr]) stream.on("data", (chunk) => (said += String(chunk)));
  const ended = once(dev, "exit");
  const until = async <T>(what: string, fact: () => T | undefined): Promise<T> => {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await pause(100)) {
      const found = fact();
      if (found !== undefined && found !== false) return found;
      if (dev.exitCode !== null) break;
    }
    throw new Error(`not in time: ${what}; dev said: ${said}`);
  };
  try {
    await until("dev is ready", () => said.includes("ready: app.ts is served") || undefined);
    const args = ["start", "measure", "--input", '{"words":["hold","fast"]}', "--wait"];
    assert.equal(holdfast(...args).trim(), "8");

    // The second page of the tutorial, as it stands there.
    const app = join(shop, "app.ts");
    writeFileSync(app, withSlowTally(readFileSync(app, "utf8")));
    await until("the changed code is loaded", () => /loaded in /.test(said) || undefined);
    holdfast("start", "measure", "--id", "slow", "--input", '{"words":["a","bb","ccc","dddd"]}');
    const holder = await until("a worker holds the session", () =>
      holderOf(holdfast("sessions", "list", "--json")),
    );
    const pid = pidOf(holdfast("workers", "list", "--json"), holder);
    process.stdout.write(`kill -9 ${pid} (${holder})\n`);
    process.kill(pid, "SIGKILL");
    const result = Number(holdfast("result", "slow", "--timeout", "60s").trim());
    assert.ok(result > 0 && result <= 10, `the result is ${result}`);
    assert.match(holdfast("history", "slow"), /session\.lost/);
  } finally {
    if (dev.exitCode === null && dev.pid !== undefined) process.kill(-dev.pid, "SIGTERM");
    await ended;
  }
}

/** The tutorial says: this in the place of `tally`. What app.ts imports already is not imported twice. */
function withSlowTally(app: string): string {
  const tutorial = readFileSync(join(root, "docs/tutorial.md"), "utf8");
  const page = tutorial.slice(tutorial.indexOf("## 2. Kill the worker yourself"));
  const block = /^```ts\n([\s\S]*?)^```$/m.exec(page)?.[1];
  assert.ok(block, "the tutorial's second page has code");
  const [pauseImport = "", ...rest] = block.split("\n").filter((line) => !/from "holdfast";$/.test(line));
  return `${pauseImport}\n${app.replace(/^export const tally = [\s\S]*?^\}\);$/m, rest.join("\n"))}`;
}

const Sessions = z.array(z.object({ instanceId: z.string(), workerId: z.string().optional() }));
const Workers = z.array(z.object({ workerId: z.string(), pid: z.int() }));

const holderOf = (json: string): string | undefined =>
  Sessions.parse(JSON.parse(json)).find(({ instanceId }) => instanceId === "slow")?.workerId;

function pidOf(json: string, workerId: string): number {
  const worker = Workers.parse(JSON.parse(json)).find((one) => one.workerId === workerId);
  assert.ok(worker, `${workerId} is among the workers`);
  return worker.pid;
}
