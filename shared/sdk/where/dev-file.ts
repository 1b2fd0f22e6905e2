/** `<data folder>/dev.json`: how other commands in the same folder find the running `holdfast dev`. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const DevFile = z.object({
  pid: z.int().positive(),
  natsUrl: z.string(),
  prefix: z.string().default(""),
  sync: z.string().optional(),
  dashboard: z.string().optional(),
});
type DevFile = z.infer<typeof DevFile>;

const fileIn = (dataDir: string): string => join(dataDir, "dev.json");

export function writeDevFile(dataDir: string, dev: DevFile): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), `${JSON.stringify(dev)}\n`, { mode: 0o600 });
}

export function removeDevFile(dataDir: string): void {
  rmSync(fileIn(dataDir), { force: true });
}

/** Undefined if the file does not exist or the process that wrote it has ended. */
export function readDevFile(dataDir: string): DevFile | undefined {
  let text: string;
  try {
    text = readFileSync(fileIn(dataDir), "utf8");
  } catch {
    return undefined; // No `holdfast dev` runs here.
  }
  const parsed = DevFile.safeParse(parse(text));
  return parsed.success && isAlive(parsed.data.pid) ? parsed.data : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Half written: treated as missing.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
