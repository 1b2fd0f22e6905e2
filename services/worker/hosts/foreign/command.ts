/** Prepares the start of a command: its working folder and its environment. */
import { statSync } from "node:fs";
import { delimiter, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { hostProtocolVersion } from "../../../../schemas/index.ts";
import type { HostCommand, SessionTypeOptions } from "../../../../shared/definitions/index.ts";

const pathOf = (part: string | URL): string => (typeof part === "string" ? part : fileURLToPath(part));

export function commandLine([program, ...args]: HostCommand): [string, ...string[]] {
  return [pathOf(program), ...args.map(pathOf)];
}

/** The folder of the application's module, unless the type sets another. */
export function commandFolder(
  cwd: SessionTypeOptions["cwd"],
  appPath: string | undefined,
): string | undefined {
  const app = appPath === undefined ? undefined : resolve(appPath);
  const folder = app === undefined ? undefined : isFolder(app) ? app : dirname(app);
  if (cwd === undefined) return folder;
  return typeof cwd === "string" ? resolve(folder ?? ".", cwd) : fileURLToPath(cwd);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** The folder of `holdfast_host.py`: at the same relative path in the sources and in the build. */
const pythonFolder: string = fileURLToPath(new URL("../python", import.meta.url));

/**
 * Makes `import holdfast_host` work, turns off output buffering, and passes the agreed limits to the library.
 */
export function commandEnvironment(
  env: NodeJS.ProcessEnv,
  { concurrency, maxMessageBytes }: { concurrency: number; maxMessageBytes: number },
): NodeJS.ProcessEnv {
  const { PYTHONPATH: path } = env;
  return {
    PYTHONUNBUFFERED: "1",
    ...env,
    PYTHONPATH: path ? `${pythonFolder}${delimiter}${path}` : pythonFolder,
    HOLDFAST_HOST_PROTOCOL: String(hostProtocolVersion),
    HOLDFAST_HOST_CONCURRENCY: String(concurrency),
    HOLDFAST_HOST_MAX_MESSAGE: String(maxMessageBytes),
  };
}
