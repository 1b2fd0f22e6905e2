/**
 * `--peers`: runs the comparison with other engines as a process of its own, with their packages in a folder
 * of their own.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { findServer } from "../shared/embedded-nats/index.ts";
import type { BenchOptions } from "./options.ts";

const main = fileURLToPath(new URL("./peers/main.mjs", import.meta.url));
const plot = fileURLToPath(new URL("../docs/images/peers.svg", import.meta.url));

/** Every engine flushes each write before it acknowledges it; Restate and DBOS always do. */
const flushed = ["--peers", "holdfast:always-shared,holdfast:always,restate,dbos,bullmq:always"];

export async function runPeers({ quick, sync }: Pick<BenchOptions, "quick" | "sync">): Promise<number> {
  const { path } = await findServer();
  const size = quick ? ["--quick", "--repetitions", "1"] : [];
  const args = [...size, ...(sync === "always" ? flushed : quick ? [] : ["--plot", plot])];
  const env = { ...process.env, NATS_SERVER: path };
  const child = spawn(process.execPath, [main, ...args], { stdio: "inherit", env });
  const [code] = await once(child, "exit");
  return Number(code ?? 1);
}
