/**
 * Registers the compiler for applications in TypeScript. Where hooks run on the loader's own thread (all that
 * Node 20 has), only that thread needs the compiler: the compiler's own registration would load it into this
 * thread too, for some 6 MB in every service.
 */
import * as nodeModule from "node:module";

export async function registerTypescript(): Promise<void> {
  if ("registerHooks" in nodeModule) {
    const { register } = await import("tsx/esm/api");
    register();
    return;
  }
  // The same steps as the compiler's own registration, without its namespaces.
  process.setSourceMapsEnabled(true);
  nodeModule.register("tsx/esm", { parentURL: import.meta.url, data: true });
}
