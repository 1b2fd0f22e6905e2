/**
 * The compiler for applications in TypeScript. Where hooks run on the loader's own thread (all that Node 20 has), only
 * that thread needs the compiler: its own way in would load it into this one as well, for some 6 MB of every service.
 */
import * as nodeModule from "node:module";

export async function registerTypescript(): Promise<void> {
  if ("registerHooks" in nodeModule) {
    const { register } = await import("tsx/esm/api");
    register();
    return;
  }
  // What that does there, less the namespaces.
  process.setSourceMapsEnabled(true);
  nodeModule.register("tsx/esm", { parentURL: import.meta.url, data: true });
}
