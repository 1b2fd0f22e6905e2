import { Worker, type WorkerOptions } from "node:worker_threads";
import { builtModule } from "./built-module.ts";

/** Starts the module `name` beside the caller (`import.meta.url`) as a thread. */
export const startThread = (caller: string, name: string, options: WorkerOptions = {}): Worker =>
  new Worker(builtModule(caller, name), options);
