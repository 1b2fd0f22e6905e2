/** Runs a tool of the machine, such as apt-get or tar, with a time limit. */
import { execFile } from "node:child_process";

export type CommandResult =
  | { kind: "done"; stdout: string }
  /** The tool is not installed, exited with another code than 0, or timed out; `reason` is one line. */
  | { kind: "failed"; reason: string };

export interface CommandOptions {
  cwd?: string;
  timeoutMs: number;
}

/** Never throws: the caller continues if a tool is missing or fails. */
export function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      {
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
        timeout: options.timeoutMs,
        killSignal: "SIGKILL",
        maxBuffer: 16 * 1024 * 1024,
        // The reasons shown to people are taken from the tool's output: keep it in one language.
        env: { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" },
      },
      (error, stdout, stderr) => {
        if (!error) resolve({ kind: "done", stdout });
        else resolve({ kind: "failed", reason: `${file} ${explain(error, stderr, options.timeoutMs)}` });
      },
    );
  });
}

function explain(error: Error, stderr: string, timeoutMs: number): string {
  if ("code" in error && error.code === "ENOENT") return "is not installed";
  if ("code" in error && error.code === "EACCES") return "may not be executed";
  if ("killed" in error && error.killed === true) return `did not finish within ${timeoutMs} ms`;
  return `failed: ${lastLine(stderr) ?? firstLine(error.message)}`;
}

const firstLine = (text: string): string => text.trim().split("\n", 1)[0] ?? "";

const lastLine = (text: string): string | undefined =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .at(-1);
