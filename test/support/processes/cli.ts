/** Test kit: the built command line as its users run it, in processes of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export const repository = resolve(import.meta.dirname, "../../..");
export const bin = resolve(repository, "bin/holdfast.js");
export const basicsApp = resolve(repository, "test/support/apps/basics-and-cart.ts");

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
}

/** The environment of the tests may name a server of its own: never used by accident. */
function cleanEnv(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { NATS_URL: _, ...inherited } = process.env;
  return { ...inherited, ...env };
}

/** Where tests run with roles, so does `dev`, unless the test has it join a server that is there. */
const asTested = (args: string[], { env }: CliOptions): string[] =>
  args[0] === "dev" && process.env.HOLDFAST_TEST_ROLES === "on" && env?.NATS_URL === undefined
    ? [...args, "--roles"]
    : args;

export async function runCli(args: string[], options: CliOptions = {}): Promise<Finished> {
  const child = spawn(process.execPath, [bin, ...asTested(args, options)], {
    cwd: options.cwd,
    env: cleanEnv(options.env),
  });
  const finished: Finished = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (finished.stdout += chunk));
  child.stderr.on("data", (chunk) => (finished.stderr += chunk));
  child.stdin.end(options.input);
  [finished.code] = await once(child, "close");
  return finished;
}

export interface Ready {
  ready: true;
  natsUrl: string;
  dashboard?: string;
  pids: { nats?: number; orchestrator: number; watcher: number; workers: number[]; gateway?: number };
}

export interface Dev {
  readonly ready: Ready;
  readonly pid: number;
  readonly dataDir: string;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Every process it started, as far as it said. */
  readonly allPids: () => number[];
  signal(signal: NodeJS.Signals): void;
  /** Waits for the end. */
  ended(): Promise<number | null>;
}

export async function startDev(
  dataDir: string,
  options: CliOptions & { args?: string[] } = {},
): Promise<Dev> {
  const args = ["dev", "--json", "--data-dir", dataDir, ...(options.args ?? ["--app", basicsApp])];
  const child = spawn(process.execPath, [bin, ...asTested(args, options)], {
    cwd: options.cwd ?? dataDir,
    env: cleanEnv(options.env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const ended = once(child, "close").then(([code]) => code as number | null);
  const gone = ended.then((code) => {
    throw new Error(`dev ended with ${code} before it was ready: ${stderr}`);
  });
  await Promise.race([until(() => stdout.includes("\n"), "dev is ready", 60_000), gone]);
  gone.catch(() => undefined); // later on it is meant to end
  const ready = JSON.parse(stdout) as Ready;
  const { nats, orchestrator, watcher, workers, gateway } = ready.pids;
  return {
    ready,
    pid: child.pid ?? 0,
    dataDir,
    stdout: () => stdout,
    stderr: () => stderr,
    allPids: () => [nats, orchestrator, watcher, ...workers, gateway].filter((pid) => pid !== undefined),
    signal: (signal) => void child.kill(signal),
    ended: () => ended,
  };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // no such process
  }
}

/** Waits for a fact. */
export async function until(
  fact: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 45_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await fact())) {
    if (performance.now() > deadline) throw new Error(`not in time: ${what}`);
    await delay(20);
  }
}
