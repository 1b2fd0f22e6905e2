/**
 * Options for where the state of a session type lives and for its host, and the check for contradictions
 * among them.
 */
import { Fault } from "../errors/index.ts";
import type { Duration } from "../runtime/index.ts";

/** Where a session's state lives: in the worker's own thread, in a thread, or in a process. */
export type Isolation = "inline" | "thread" | "process";

/** How the threads or processes that hold a session type's state are kept: room, recycling, pings. */
export interface HostOptions {
  /** Most sessions of one thread host, which wait while code of one of them blocks it. Default 1. A process hosts one. */
  sessionsPerHost?: number;
  /** A host is replaced after this long. Default: never. */
  maxAge?: Duration;
  /** A host is replaced after this many calls. Default: never. */
  maxCalls?: number;
  /** A host is replaced when it uses more memory than this, in megabytes. Default: never. */
  maxRssMb?: number;
  /** Time between two pings of a host. Default 2 s. */
  pingInterval?: Duration;
  /** How long the answer to a ping may take. */
  pingTimeout?: Duration;
  /** A host that misses this many pings in a row counts as hung. Default 3. */
  maxMissed?: number;
  ping?: {
    /** False: the host is not pinged, and only its exit is noticed. Default true. */
    enabled?: boolean;
    /** Time between the host's report that it is ready and the first ping. Default: `pingInterval`. */
    initialDelay?: Duration;
  };
  /** Time between SIGTERM and SIGKILL. */
  killGrace?: Duration;
  /**
   * Longest message to and from a host started by `command`, in megabytes, attachments included. Default 256.
   */
  maxMessageMb?: number;
}

/** A program and its arguments. A URL stands for the path of that file. */
export type HostCommand = readonly [string | URL, ...(string | URL)[]];

/**
 * Where a session type's state lives: in the worker, a thread, a process, or a program in another language.
 */
export interface HostingOptions {
  isolation?: Isolation;
  host?: HostOptions;
  /**
   * Any program that speaks the host protocol (docs/host-protocol.md) keeps the state. Needs isolation
   * "process".
   */
  command?: HostCommand;
  /** The working folder of `command`. Default: the folder of the application's module. */
  cwd?: string | URL;
  /**
   * Variables for the environment of this type's hosts; they take precedence over the worker's. Not for
   * isolation "inline".
   */
  env?: Readonly<Record<string, string>>;
  /** Threads of one host that run calls of one session at once. Needs isolation "thread" and `threadSafe`. */
  threads?: number;
  /**
   * True: calls may run at once on this state. False: they may not; the host refuses a second call while the
   * first runs, except in production (NODE_ENV), where nothing is checked.
   */
  threadSafe?: boolean;
}

interface Hosting extends HostingOptions {
  concurrency?: number;
  init?: unknown;
  share?: unknown;
  checkpoint?: unknown;
  restore?: unknown;
  snapshot?: unknown;
  shutdown?: unknown;
}

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Throws if the options that say where a session type's state lives contradict each other. `runs`: the names of calls
 * with and without code of their own.
 */
export function checkHosting(
  name: string,
  spec: Hosting,
  runs: { withCode: string[]; without: string[] },
): void {
  const refuse = (message: string): never => {
    throw new Fault("config", {
      code: "invalid_session_definition",
      message: `session "${name}": ${message}`,
    });
  };
  const isolation = spec.isolation ?? "inline";
  if (spec.command !== undefined) checkCommand(spec, isolation, runs.withCode, refuse);
  else {
    if (typeof spec.init !== "function") refuse("init is missing");
    const [missing] = runs.without;
    if (missing !== undefined)
      refuse(`call "${missing}" has no run: give it one, or name the program that has it (command)`);
    if (spec.cwd !== undefined) refuse("cwd is the folder of command, and command is missing");
  }
  checkEnv(spec, isolation, refuse);
  checkThreads(spec, isolation, refuse);
}

type Refuse = (message: string) => never;

function checkCommand(spec: Hosting, isolation: Isolation, withCode: string[], refuse: Refuse): void {
  const { command } = spec;
  const parts: readonly unknown[] = Array.isArray(command) ? command : [];
  const valid = (part: unknown) => (typeof part === "string" && !part.includes("\0")) || part instanceof URL;
  if (parts.length === 0 || parts[0] === "" || !parts.every(valid)) {
    refuse('command must be a program and its arguments, such as ["python3", "model.py"]');
  }
  const notAFile = parts.find((part) => part instanceof URL && part.protocol !== "file:");
  if (notAFile !== undefined) refuse(`command has ${String(notAFile)}, which is not a file`);
  if (isolation !== "process") refuse(`command needs isolation "process", and it is "${isolation}"`);
  for (const what of ["init", "share", "restore", "shutdown"] as const) {
    if (spec[what] !== undefined) refuse(`${what} belongs to the program of command: leave it out here`);
  }
  for (const what of ["checkpoint", "snapshot"] as const) {
    if (spec[what] !== undefined && typeof spec[what] !== "boolean") {
      refuse(`${what} belongs to the program of command: write true here if the program has it`);
    }
  }
  const [run] = withCode;
  if (run !== undefined)
    refuse(`call "${run}" has run, but the program of command has its code: leave run out here`);
}

function checkEnv({ env }: Hosting, isolation: Isolation, refuse: Refuse): void {
  if (env === undefined) return;
  if (isolation === "inline") {
    refuse(`env needs isolation "thread" or "process": inline code shares the worker's environment`);
  }
  for (const [variable, value] of Object.entries(env)) {
    if (!variableName.test(variable)) refuse(`env has "${variable}", which is not a variable name`);
    if (typeof value !== "string" || value.includes("\0")) {
      refuse(`env.${variable} must be a text without null characters`);
    }
  }
}

function checkThreads(spec: Hosting, isolation: Isolation, refuse: Refuse): void {
  const { threads = 1, threadSafe, concurrency = 1 } = spec;
  if (!Number.isInteger(threads) || threads < 1 || threads > 256) {
    refuse(`threads is ${String(threads)}: must be a whole number from 1 to 256`);
  }
  if (threadSafe === false && concurrency > 1) {
    refuse(`concurrency (${concurrency}) and threadSafe: false contradict: its calls may not run at once`);
  }
  if (threads === 1) return;
  if (isolation !== "thread") refuse(`threads needs isolation "thread", and it is "${isolation}"`);
  if (threadSafe !== true) {
    refuse(
      `threads (${threads}) needs threadSafe: true: every thread runs init and has a state of its own, and calls run on any of them`,
    );
  }
  if (spec.checkpoint !== undefined && spec.share === undefined) {
    refuse(
      `checkpoint with threads (${threads}) needs share: one thread writes it and cannot see the others' states`,
    );
  }
}
