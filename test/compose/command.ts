import { execFile } from "node:child_process";

export interface CommandOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  timeoutMs?: number;
}

export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs to the end; what it exits with is an outcome. */
export function attempt(
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<Finished> {
  return new Promise((resolve) => {
    const { timeoutMs = 300_000, ...rest } = options;
    const limits = { timeout: timeoutMs, killSignal: "SIGKILL" as const, maxBuffer: 256 * 1024 * 1024 };
    execFile(file, args, { ...rest, ...limits }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      const why = error !== null && code === -1 ? `${stderr}\n${error.message}` : stderr;
      resolve({ code, stdout, stderr: why });
    });
  });
}

/** Its standard output; throws with its last words when it does not exit with 0. */
export async function command(
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const { code, stdout, stderr } = await attempt(file, args, options);
  if (code === 0) return stdout;
  throw new Error(`${file} ${args.slice(0, 8).join(" ")} … exited with ${code}:\n${tail(stderr || stdout)}`);
}

export const tail = (text: string, lines = 30): string => text.trimEnd().split("\n").slice(-lines).join("\n");

export const lastLine = (text: string): string => tail(text, 1).trim();
