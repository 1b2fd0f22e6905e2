import { join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * The module `name` beside the caller (`import.meta.url`), as it was built, to be started as a process or a thread. A
 * caller that runs from its source, in tests, starts the built one too: a loader for TypeScript would cost each start more
 * than a second.
 */
export function builtModule(caller: string, name: string): URL {
  if (!caller.endsWith(".ts")) return new URL(`${name}.js`, caller);
  const place = relative(root, fileURLToPath(caller)).replaceAll(sep, "/");
  return new URL(`${name}.js`, pathToFileURL(join(root, "dist", place)));
}
