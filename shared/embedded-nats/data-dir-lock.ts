/**
 * One live server per data folder: JetStream does not guard its own store.
 *
 * LOCK-1 The lock file appears whole (written aside, then hard-linked), so a reader never sees half of it.
 * LOCK-2 The lock is held while any process named in it lives: the starter, and from the spawn on the server
 *    too, so a server that outlived its starter still holds its folder.
 * LOCK-3 A dead holder's file is renamed before it is removed, and read once more: of two starters that find
 *    the same dead lock, the slower one puts back the lock of the faster one. A third starter in that same
 *    instant is not covered.
 *
 * Processes are compared by pid, so two containers that share a folder do not see each other.
 */
import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { Fault } from "../errors/index.ts";
import { isSameProcess, processMark } from "./process-mark.ts";

const Holder = z.object({
  token: z.string(),
  processes: z.array(z.object({ pid: z.int().positive(), mark: z.string() })),
});
type Holder = z.infer<typeof Holder>;

export class DataDirLock {
  readonly #path: string;
  readonly #token: string;

  constructor(path: string, token: string) {
    this.#path = path;
    this.#token = token;
  }

  /** LOCK-2. Synchronous, so that nothing of this process runs between the spawn and the record of it. */
  share(serverPid: number): void {
    const staged = `${this.#path}.${randomUUID()}`;
    writeFileSync(staged, holderText(this.#token, [serverPid, process.pid]));
    renameSync(staged, this.#path);
  }

  /** May be called twice. A lock that another process holds by now is left alone. */
  release(): void {
    if (readHolder(this.#path)?.token === this.#token) rmSync(this.#path, { force: true });
  }
}

function holderText(token: string, pids: readonly number[]): string {
  const processes = pids.map((pid) => ({ pid, mark: processMark(pid) ?? "" }));
  return JSON.stringify({ token, processes } satisfies Holder);
}

export function lockDataDir(dataDir: string): DataDirLock {
  const path = join(dataDir, "holdfast.lock");
  const token = randomUUID();
  const staged = `${path}.${token}`;
  writeFileSync(staged, holderText(token, [process.pid]));
  try {
    for (;;) {
      if (tryLink(staged, path)) return new DataDirLock(path, token);
      const holder = readHolder(path);
      const live = holder?.processes.find(({ pid, mark }) => isSameProcess(pid, mark));
      if (live) throw inUse(dataDir, live.pid);
      removeDead(path, holder);
    }
  } finally {
    rmSync(staged, { force: true });
  }
}

/** LOCK-1 */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** LOCK-3 */
function removeDead(path: string, dead: Holder | undefined): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  if (readHolder(aside)?.token !== dead?.token) tryLink(aside, path);
  rmSync(aside, { force: true });
}

/** Undefined also for a file that no holder can have written whole (LOCK-1): such a file holds nothing. */
function readHolder(path: string): Holder | undefined {
  try {
    return Holder.safeParse(JSON.parse(readFileSync(path, "utf8"))).data;
  } catch {
    return undefined;
  }
}

const inUse = (dataDir: string, pid: number): Fault =>
  new Fault("config", {
    code: "nats_data_dir_in_use",
    message: `the data folder ${dataDir} is in use by the live process ${pid}`,
    hint: "Stop that process, or choose another data folder (`holdfast dev --data-dir <folder>`).",
    details: { dataDir, pid },
  });

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;
