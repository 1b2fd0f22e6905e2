/**
 * Loads the built code together with V8's code cache, which the build writes beside it (bundle.mjs): compiling that code
 * takes longer than running it. A Node that is not the one of the build refuses the cache and compiles as usual.
 */
import { readFileSync } from "node:fs";
import Module from "node:module";
import { dirname, join, sep } from "node:path";
import { Script } from "node:vm";

/** The folder of the built code. If a user's bundler has moved this file, no cached script is found there. */
const built = join(import.meta.dirname ?? "", "..", "dist") + sep;
const compile = Module._extensions[".js"];

Module._extensions[".cjs"] = (module, file) => {
  const script = file.startsWith(built) ? cachedScript(file) : undefined;
  if (script === undefined) return compile(module, file);
  const run = script.runInThisContext();
  run.call(module.exports, module.exports, Module.createRequire(file), module, file, dirname(file));
};

function cachedScript(file) {
  try {
    const cachedData = readFileSync(`${file}.cache`);
    const script = new Script(Module.wrap(readFileSync(file, "utf8")), { filename: file, cachedData });
    return script.cachedDataRejected ? undefined : script;
  } catch {
    return undefined; // no cache, as in the published package
  }
}
