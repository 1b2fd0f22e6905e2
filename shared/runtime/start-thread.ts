import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker, type WorkerOptions } from "node:worker_threads";

/**
 * Starts the module `name` beside the caller (`import.meta.url`) as a thread. Built code is JavaScript and
 * starts as it is; from sources a loader is registered first, because threads do not inherit one.
 */
export function startThread(caller: string, name: string, options: WorkerOptions = {}): Worker {
  if (!caller.endsWith(".ts")) return new Worker(new URL(`${name}.js`, caller), options);
  const entry = JSON.stringify(new URL(`${name}.ts`, caller).href);
  // `resolve` finds the loader's CommonJS entry, which cannot register the loader from a thread.
  const door = createRequire(import.meta.url)
    .resolve("tsx/esm/api")
    .replace(/\.cjs$/, ".mjs");
  const loader = JSON.stringify(pathToFileURL(door).href);
  const boot = `import(${loader}).then((loader) => { loader.register(); return import(${entry}); });`;
  return new Worker(boot, { ...options, eval: true });
}
