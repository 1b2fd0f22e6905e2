/**
 * A Docker daemon of our own, away from everything the machine has: its data, sockets and state lie in one temporary
 * folder that is removed at the end, its default bridge has a name of its own, and it makes no rules in the machine's
 * firewall. Networks work (a bridge each, names by the embedded resolver), published ports go through the proxy; what does
 * not work is the way out of a container, so images are built with the machine's network.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { attempt, lastLine } from "../command.ts";
import { type Bridge, makeBridge } from "./bridge.ts";
import { watchOwnDeath } from "./death-watch.ts";

export interface Daemon extends AsyncDisposable {
  /** For the command line: where it listens, where its plugins are. */
  readonly env: NodeJS.ProcessEnv;
  /** True if containers that name no network can publish a port. */
  readonly hasDefaultBridge: boolean;
}

const readyWithinMs = 60_000;
const stopWithinMs = 60_000;

export async function startDaemon(packages: string): Promise<Daemon> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-docker-"));
  const socket = `unix://${join(folder, "docker.sock")}`;
  const log = join(folder, "dockerd.log");
  const env = {
    ...process.env,
    PATH: `${join(packages, "usr/bin")}:${join(packages, "usr/sbin")}:${process.env.PATH}`,
    DOCKER_HOST: socket,
    DOCKER_CONFIG: await pluginFolder(packages, folder),
  };
  const libraries = await libraryFolder(packages);
  const bridge = await makeBridge();
  const child = spawn("dockerd", daemonOptions({ folder, socket, packages, bridge }), {
    env: { ...env, LD_LIBRARY_PATH: libraries, XTABLES_LIBDIR: join(libraries, "xtables") },
    stdio: ["ignore", openSync(log, "a"), openSync(log, "a")],
    detached: true,
  });
  const callOff =
    child.pid === undefined
      ? () => undefined
      : watchOwnDeath({ daemonPid: child.pid, folder, bridge: bridge?.name ?? "", env });
  const stop = async () => {
    await end(child);
    callOff();
    await bridge?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 500 });
  };
  try {
    await ready(child, env, log);
  } catch (error) {
    await stop();
    throw error;
  }
  return { env, hasDefaultBridge: bridge !== undefined, [Symbol.asyncDispose]: stop };
}

interface Places {
  folder: string;
  socket: string;
  packages: string;
  bridge: Bridge | undefined;
}

const daemonOptions = ({ folder, socket, packages, bridge }: Places): string[] => [
  ...["--host", socket, "--pidfile", join(folder, "docker.pid")],
  ...["--data-root", join(folder, "data"), "--exec-root", join(folder, "run")],
  ...["--bridge", bridge?.name ?? "none"],
  ...["--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false"],
  ...["--init-path", join(packages, "usr/bin/tini-static")],
  ...["--userland-proxy-path", join(packages, "usr/sbin/docker-proxy")],
];

async function pluginFolder(packages: string, folder: string): Promise<string> {
  const config = join(folder, "config");
  await mkdir(config);
  await symlink(join(packages, "usr/libexec/docker/cli-plugins"), join(config, "cli-plugins"));
  return config;
}

async function libraryFolder(packages: string): Promise<string> {
  const names = await readdir(join(packages, "usr/lib"));
  const name = names.find((candidate) => candidate.endsWith("-linux-gnu"));
  if (name === undefined) throw new Error("the packages hold no libraries");
  return join(packages, "usr/lib", name);
}

async function ready(child: ChildProcess, env: NodeJS.ProcessEnv, log: string): Promise<void> {
  const deadline = performance.now() + readyWithinMs;
  const failed = once(child, "error").then(([error]) => String(error));
  for (;;) {
    const asked = attempt("docker", ["info"], { env, timeoutMs: 5_000 });
    const first = await Promise.race([asked, failed]);
    if (typeof first === "string") throw new Error(first);
    if (first.code === 0) return;
    const gone = child.exitCode !== null || child.signalCode !== null;
    if (gone || performance.now() > deadline) {
      throw new Error(`dockerd did not start: ${lastLine(await readFile(log, "utf8"))}`);
    }
    await delay(200);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
  await gone;
  clearTimeout(kill);
}
