/**
 * The file with the link that logs an administrator in. It is readable by its owner alone, and lies in no
 * other user's folder: that user could put a link of their own in its place.
 */
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Fault } from "../../../shared/errors/index.ts";

/** Replaces the file in one step: a reader always sees a whole token. */
export function writeTokenFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}`;
  try {
    ownFolder(dirname(path));
    rmSync(draft, { force: true });
    writeFileSync(draft, `${text}\n`, { mode: 0o600, flag: "wx" });
    renameSync(draft, path);
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    throw new Fault("config", {
      code: "token_file_unwritable",
      message: `the login link cannot be written to ${path}: ${cause instanceof Error ? cause.message : cause}`,
      hint: "Name another file with GATEWAY_TOKEN_FILE, or set tokens of your own in GATEWAY_TOKENS_FILE.",
      cause,
    });
  }
}

function ownFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid } = statSync(folder);
  if (process.getuid === undefined || uid === process.getuid() || uid === 0) return;
  throw new Fault("config", {
    code: "token_file_unwritable",
    message: `the login link cannot be written to ${folder}: the folder belongs to another user`,
    hint: "Name a file in a folder of this user's own with GATEWAY_TOKEN_FILE.",
  });
}
