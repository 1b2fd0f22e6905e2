/**
 * A program in any language that speaks the host protocol on its stdin and stdout. It has a process group of
 * its own; a guard process in that group ends it when the worker is gone for any reason (HOST-3).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { FromHostMessage, type ToHostMessage } from "../../../../schemas/index.ts";
import type { AnySession } from "../../../../shared/definitions/index.ts";
import type { Clock } from "../../../../shared/runtime/index.ts";
import type { Carrier, CarrierListener, Exit } from "../isolated/carrier.ts";
import type { FromHost, Post, ToHost } from "../isolated/protocol.ts";
import { LastLines } from "../process/last-lines.ts";
import { ProcessGroup } from "../process/process-group.ts";
import { ForeignServer } from "./foreign-server.ts";
import { frame } from "./frame.ts";
import { FrameReader } from "./frame-reader.ts";

interface CommandSetup {
  definition: AnySession;
  command: readonly [string, ...string[]];
  cwd: string | undefined;
  env: NodeJS.ProcessEnv;
  maxMessageBytes: number;
  killGraceMs: number;
  clock: Clock;
}

/**
 * The worker holds the other end of descriptor 3 and writes nothing: a process that reads it wakes when the
 * worker is gone. The guard is started by a double fork, so that it is no child of the program, which may
 * wait for its own children.
 */
const guarded = `
((read -r _ <&3; kill -KILL 0) 0</dev/null 1>/dev/null 2>&1 &)
exec "$@" 3<&-
`;

export class CommandCarrier implements Carrier {
  readonly #setup: CommandSetup;
  readonly #child: ChildProcess;
  readonly #stdin: Writable | null;
  readonly #group: ProcessGroup;
  readonly #stderr: LastLines;
  readonly #server: ForeignServer;
  #listener: CarrierListener | undefined;
  /** Set if the program broke the protocol and is being ended for it. */
  #breach: string | undefined;

  constructor(setup: CommandSetup) {
    this.#setup = setup;
    const { command, cwd, env } = setup;
    this.#child = spawn("/bin/sh", ["-c", guarded, "sh", ...command], {
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
      env,
      cwd,
    });
    this.#stdin = this.#child.stdin;
    // A pipe that is closing means that the program exits: open requests fail with that exit.
    this.#stdin?.on("error", () => undefined);
    this.#child.stdio[3]?.on("error", () => undefined);
    this.#group = new ProcessGroup(this.#child, setup.clock);
    this.#stderr = new LastLines(this.#child.stderr, process.stderr);
    this.#server = new ForeignServer({
      definition: setup.definition,
      send: (message) => this.#send(message),
      post: (message) => this.#toWorker(message),
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  readonly post: Post<ToHost> = (message) => this.#server.receive(message);

  listen(listener: CarrierListener): void {
    this.#listener = listener;
    const reader = new FrameReader(this.#setup.maxMessageBytes, {
      message: (message) => this.#message(message),
      tooLong: (head, bytes) => this.#tooLong(head, bytes),
      breach: (line) => this.#end(`wrote to stdout what is not the host protocol: ${JSON.stringify(line)}`),
    });
    const stdout: Readable | null = this.#child.stdout;
    stdout?.on("data", (chunk: Buffer) => reader.push(chunk));
    stdout?.on("end", () => reader.end());
    void this.#group.exited.then(async (exit) => {
      await this.#group.drained();
      listener.exit({ how: this.#howEnded(exit) });
    });
  }

  lastWords(): string {
    return this.#stderr.toString();
  }

  end(graceMs: number): Promise<void> {
    return this.#group.end(graceMs);
  }

  #send(message: ToHostMessage): void {
    if (!this.#stdin?.writable) return;
    for (const part of frame(message, this.#setup.maxMessageBytes)) this.#stdin.write(part);
  }

  #message(message: object): void {
    const parsed = FromHostMessage.safeParse(message);
    if (parsed.success) return this.#server.receiveFromHost(parsed.data);
    const [issue] = parsed.error.issues;
    const why = issue ? `${issue.path.join(".") || "it"}: ${issue.message}` : "unknown";
    const line = JSON.stringify(message).slice(0, 400);
    this.#end(`sent a message that is not the host protocol (${why}): ${line}`);
  }

  #toWorker(message: FromHost): void {
    if (message.kind !== "pong") return this.#listener?.message(message);
    const rssBytes = message.rssBytes ?? (this.pid === undefined ? undefined : residentBytes(this.pid));
    this.#listener?.message({ ...message, rssBytes });
  }

  #tooLong(head: string, bytes: number): void {
    const { maxMessageBytes } = this.#setup;
    const why = `the host sent a message of ${bytes} bytes, and one may have ${maxMessageBytes} (host.maxMessageMb)`;
    const id = /^\{\s*"kind"\s*:\s*"\w+"\s*,\s*"id"\s*:\s*(\d+)/.exec(head)?.[1];
    if (this.#server.tooLong(id === undefined ? undefined : Number(id), why)) return;
    this.#end(
      `sent a message of ${bytes} bytes, and one may have ${maxMessageBytes}: ${JSON.stringify(head)}`,
    );
  }

  /** The program's output can no longer be understood. */
  #end(why: string): void {
    if (this.#breach !== undefined) return;
    this.#breach = why;
    void this.#group.end(this.#setup.killGraceMs);
  }

  #howEnded({ how, code }: Exit): string {
    const { command, cwd } = this.#setup;
    const program = `(${command.join(" ")})`;
    if (this.#breach !== undefined) return `${program} was ended: it ${this.#breach}`;
    if (code === 127)
      return `${program} could not be started: there is no command ${command[0]} (exit code 127)`;
    if (code === 126)
      return `${program} could not be started: ${command[0]} is not executable (exit code 126)`;
    if (code === undefined && cwd !== undefined && !existsSync(cwd)) {
      return `${program} could not be started: there is no folder ${cwd} to run it in`;
    }
    return `${program} ${how}`;
  }
}

/** Memory of a host that does not report it itself; undefined except on Linux. */
function residentBytes(pid: number): number | undefined {
  try {
    const kilobytes = /^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}
