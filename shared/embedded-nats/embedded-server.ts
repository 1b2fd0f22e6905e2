/**
 * Starts a nats-server of our own.
 *
 * SERVER-1 Start means ready: JetStream has recovered and the server has answered with the name it was given
 *    at this start. Another server that answers on the port is never taken for it.
 * SERVER-2 One live server per data folder (data-dir-lock.ts).
 * SERVER-3 The server does not outlive this process if a shell can watch (death-watch.ts).
 */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../errors/index.ts";
import { type DataDirLock, lockDataDir } from "./data-dir-lock.ts";
import { type FindServerOptions, findServer } from "./find-server.ts";
import { canListen, pickFreePort } from "./free-port.ts";
import { type Answer, readInfo, type ServerInfo } from "./read-info.ts";
import { renderServerConfig } from "./server-config.ts";
import type { FoundServer } from "./server-origin.ts";
import { type ServerExit, ServerProcess } from "./server-process.ts";

export interface EmbeddedNatsOptions extends FindServerOptions {
  /** For a server of a cluster: the cluster would count a server that returns under another name as a new one. */
  serverName?: string;
  /** Created if missing. Holds the store, the configuration, the log and the lock. */
  dataDir: string;
  /** A free port is chosen if left out. */
  port?: number | undefined;
  /**
   * Flush every write to disk before it is acknowledged. Off by default: an acknowledged write then survives
   * the death of any process, but a power cut may lose the last two minutes. When on, the write rate drops by
   * about four fifths.
   */
  syncAlways?: boolean | undefined;
  /** Further lines of nats-server configuration, copied unchanged. */
  extraConfig?: string | undefined;
  /**
   * Called once, when a server that was ready has ended. `asked` is true after stop(), false after a crash.
   */
  onExit?: ((exit: ServerExit) => void) | undefined;
}

export interface EmbeddedNats {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly version: string;
  readonly dataDir: string;
  readonly logFile: string;
  /** `always`: flushed before the acknowledgement. `interval`: every two minutes. */
  readonly sync: "always" | "interval";
  readonly exited: Promise<ServerExit>;
  /** SIGTERM, then SIGKILL after the grace. Resolves when the process has ended; may be called twice. */
  stop(): Promise<void>;
  /** Sends a signal; false when the process has ended. */
  kill(signal: NodeJS.Signals): boolean;
}

/** Recovery of a big store takes long (50 s for 20 000 streams); the death of the server is noticed at once. */
const readyWithinMs = 120_000;
const stopGraceMs = 5_000;
const askEveryMs = 20;
/**
 * Another process may take a free port before the server binds it. A port given by the caller is tried once.
 */
const portAttempts = 5;

export async function startEmbeddedNats(options: EmbeddedNatsOptions): Promise<EmbeddedNats> {
  const binary = await findServer(options);
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true });
  const lock = lockDataDir(dataDir);
  try {
    for (let attempt = 1; ; attempt++) {
      // Prefer the port this folder's server had before, so that addresses people noted stay valid.
      const port =
        options.port ?? (attempt === 1 ? await rememberedPort(dataDir) : undefined) ?? (await pickFreePort());
      const launch = await launchServer({ ...options, dataDir, port }, binary, lock);
      if (launch.kind === "ready") {
        await writeFile(portFile(dataDir), `${port}\n`);
        return launch.server;
      }
      const mayChoose = options.port === undefined && attempt < portAttempts;
      if (launch.kind === "port-taken" && mayChoose) continue;
      throw launch.fault;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

const portFile = (dataDir: string): string => join(dataDir, "port");

async function rememberedPort(dataDir: string): Promise<number | undefined> {
  const text = await readFile(portFile(dataDir), "utf8").catch(() => "");
  const port = /^\d{1,5}\s*$/.test(text) ? Number(text) : 0;
  return port > 0 && port < 65_536 && (await canListen(port)) ? port : undefined;
}

type Launch =
  | { kind: "ready"; server: EmbeddedNats }
  | { kind: "port-taken"; fault: Fault }
  | { kind: "failed"; fault: Fault };

async function launchServer(
  options: EmbeddedNatsOptions & { port: number },
  binary: FoundServer,
  lock: DataDirLock,
): Promise<Launch> {
  const { dataDir, port } = options;
  // A new name at every start: the name in the answer proves which process answers (SERVER-1).
  const serverName = options.serverName ?? `holdfast-${randomUUID()}`;
  const logFile = join(dataDir, "nats-server.log");
  const configFile = join(dataDir, "nats-server.conf");
  const syncAlways = options.syncAlways ?? false;
  await writeFile(
    configFile,
    renderServerConfig({
      version: binary.version,
      serverName,
      port,
      storeDir: join(dataDir, "store"),
      logFile,
      syncAlways,
      extraConfig: options.extraConfig,
    }),
  );
  const logStart = await sizeOf(logFile);
  const child = new ServerProcess({ binary: binary.path, configFile, logFile });
  if (child.pid !== undefined) lock.share(child.pid);

  const info = await untilReady(child, port, serverName);
  if (info === undefined || child.pid === undefined) {
    await child.stop(stopGraceMs);
    return explainFailure(port, logFile, logStart);
  }
  // A caller that waits for the exit may use the folder immediately afterwards.
  const exited = child.exited.then((exit) => {
    lock.release();
    return exit;
  });
  void exited.then((exit) => options.onExit?.(exit));
  const server: EmbeddedNats = {
    url: `nats://127.0.0.1:${port}`,
    port,
    pid: child.pid,
    version: info.version,
    dataDir,
    logFile,
    sync: syncAlways ? "always" : "interval",
    exited,
    stop: async () => {
      await child.stop(stopGraceMs);
      await exited;
    },
    kill: (signal) => child.kill(signal),
  };
  return { kind: "ready", server };
}

/**
 * SERVER-1. Undefined if the process ended or the time ran out. The server opens its port only after
 * JetStream has recovered.
 */
async function untilReady(
  child: ServerProcess,
  port: number,
  serverName: string,
): Promise<ServerInfo | undefined> {
  const deadline = performance.now() + readyWithinMs;
  while (!child.ended && performance.now() < deadline) {
    const answer = await readInfo({ host: "127.0.0.1", port });
    if (answer.kind === "server" && answer.info.server_name === serverName) return answer.info;
    await Promise.race([child.exited, delay(askEveryMs)]);
  }
  return undefined;
}

async function explainFailure(port: number, logFile: string, logStart: number): Promise<Launch> {
  // Our own server has ended: whichever process answers now has the port. Asked, not parsed from the server's
  // log text.
  const answer = await readInfo({ host: "127.0.0.1", port });
  if (answer.kind !== "nobody") {
    const fault = new Fault("config", {
      code: "nats_port_taken",
      message: `port ${port} on 127.0.0.1 is taken by ${describe(answer)}`,
      hint: `Choose another port, or set NATS_URL=nats://127.0.0.1:${port} if that server is the one to use.`,
      details: { port },
    });
    return { kind: "port-taken", fault };
  }
  const said = await logTail(logFile, logStart);
  const fault = new Fault("config", {
    code: "nats_start_failed",
    message: `nats-server did not start${said === "" ? "" : `: ${said}`}`,
    hint: `Its whole log is in ${logFile}.`,
    details: { logFile },
  });
  return { kind: "failed", fault };
}

function describe(answer: Exclude<Answer, { kind: "nobody" }>): string {
  if (answer.kind === "stranger") return "something that is not a NATS server";
  return `another NATS server (${answer.info.server_name}, version ${answer.info.version})`;
}

const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );

/** The last log lines of this start, including the fatal one. */
async function logTail(logFile: string, from: number): Promise<string> {
  const text = await readFile(logFile).then(
    (bytes) => bytes.subarray(from).toString("utf8"),
    () => "",
  );
  return text.trim().split("\n").slice(-3).join("\n");
}
