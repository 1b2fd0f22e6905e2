/**
 * A nats-server of our own.
 *
 * SERVER-1 Start means ready: JetStream has recovered and the server has answered with the name it was given this time.
 *    Whoever else answers on the port is never taken for it.
 * SERVER-2 One live server per data folder (data-dir-lock.ts).
 * SERVER-3 It does not outlive this process where a shell can watch (death-watch.ts).
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
import { type ServerExit, ServerProcess } from "./server-process.ts";
import type { FoundServer } from "./ways.ts";

export interface EmbeddedNatsOptions extends FindServerOptions {
  /** Made when missing. Holds the store, the configuration, the log and the lock. */
  dataDir: string;
  /** A free one when not given. */
  port?: number | undefined;
  /**
   * Flush every write to disk before it is acknowledged. Off by default: an acknowledged write then survives the death
   * of any process, but a power cut may lose the last two minutes. On costs about four fifths of the write rate.
   */
  syncAlways?: boolean | undefined;
  /** Further lines of nats-server configuration, as they are. */
  extraConfig?: string | undefined;
  /** Recovery of a big store takes long (50 s for 20 000 streams); a server that dies is noticed at once. */
  readyTimeoutMs?: number | undefined;
  /** Once, when a server that was ready has ended. `asked` tells stop() from a crash. */
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
  /** SIGTERM, then SIGKILL after the grace. Resolves when the process is gone; twice is once. */
  stop(): Promise<void>;
  /** Sends a signal; false when the process has ended. */
  kill(signal: NodeJS.Signals): boolean;
}

const stopGraceMs = 5_000;
const askEveryMs = 20;
/** Ports can be lost between picking and binding; with a port given by the caller there is nothing to choose. */
const portAttempts = 5;

export async function startEmbeddedNats(options: EmbeddedNatsOptions): Promise<EmbeddedNats> {
  const binary = await findServer(options);
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true });
  const lock = lockDataDir(dataDir);
  try {
    for (let attempt = 1; ; attempt++) {
      // The one this folder had before, if it is free: addresses people have noted stay right.
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
  // New at every start, so that its answer proves which process gave it (SERVER-1).
  const serverName = `holdfast-${randomUUID()}`;
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

  const info = await untilReady(child, port, serverName, options.readyTimeoutMs ?? 120_000);
  if (info === undefined || child.pid === undefined) {
    await child.stop(stopGraceMs);
    return explainFailure(port, logFile, logStart);
  }
  // Whoever waits for the end may use the folder again right after it.
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

/** SERVER-1. `undefined` when the process ended or time ran out. The port opens only after JetStream has recovered. */
async function untilReady(
  child: ServerProcess,
  port: number,
  serverName: string,
  timeoutMs: number,
): Promise<ServerInfo | undefined> {
  const deadline = performance.now() + timeoutMs;
  while (!child.ended && performance.now() < deadline) {
    const answer = await readInfo(port);
    if (answer.kind === "server" && answer.info.server_name === serverName) return answer.info;
    await Promise.race([child.exited, delay(askEveryMs)]);
  }
  return undefined;
}

async function explainFailure(port: number, logFile: string, logStart: number): Promise<Launch> {
  // Our own server is gone: whoever answers now has the port. Asked, not read from the server's English.
  const answer = await readInfo(port);
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

/** The last lines of this start, the fatal one among them. */
async function logTail(logFile: string, from: number): Promise<string> {
  const text = await readFile(logFile).then(
    (bytes) => bytes.subarray(from).toString("utf8"),
    () => "",
  );
  return text.trim().split("\n").slice(-3).join("\n");
}
