import { runCommand } from "./run-command.ts";
import {
  formatServerVersion,
  isNewEnough,
  minServerVersion,
  parseServerVersion,
  type ServerVersion,
} from "./server-version.ts";

type Probe = { kind: "usable"; version: ServerVersion } | { kind: "unusable"; reason: string };

export const binaryName = process.platform === "win32" ? "nats-server.exe" : "nats-server";

/**
 * Runs the file to read its version: a binary for another architecture or a broken copy fails here, not at
 * the start.
 */
export async function probeBinary(path: string): Promise<Probe> {
  const result = await runCommand(path, ["--version"], { timeoutMs: 10_000 });
  if (result.kind === "failed") return { kind: "unusable", reason: result.reason };
  const version = parseServerVersion(result.stdout);
  if (!version) return { kind: "unusable", reason: `${path} --version names no version` };
  if (!isNewEnough(version)) {
    const found = formatServerVersion(version);
    const needed = formatServerVersion(minServerVersion);
    return { kind: "unusable", reason: `${path} is ${found}, older than ${needed}` };
  }
  return { kind: "usable", version };
}
