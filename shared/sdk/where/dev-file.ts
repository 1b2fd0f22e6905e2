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
export type DevFile = z.infer<typeof DevFile>;

const fileIn = (dataDir: string): string => join(dataDir, "dev.json");

export function writeDevFile(dataDir: string, dev: DevFile): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), `${JSON.stringify(dev)}\n`);
}

export function removeDevFile(dataDir: string): void {
  rmSync(fileIn(dataDir), { force: true });
}

/** Undefined where there is none, or whoever wrote it is gone. */
export function readDevFile(dataDir: string): DevFile | undefined {
  let text: string;
  try {
    text = readFileSync(fileIn(dataDir), "utf8");
  } catch {
    return undefined; // nobody runs here
  }
  const parsed = DevFile.safeParse(parse(text));
  return parsed.success && isAlive(parsed.data.pid) ? parsed.data : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // half written: as good as none
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
