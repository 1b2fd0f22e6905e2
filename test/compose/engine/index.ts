/** Finds a Docker engine with compose v2, or starts one. */
import { attempt, command, lastLine } from "../command.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { enginePackages } from "./packages.ts";

export interface Engine extends AsyncDisposable {
  readonly description: string;
  /** Set where containers cannot reach out, so that images must be built with the machine's network. */
  readonly buildNetwork: "host" | undefined;
  /** True if containers that name no network can publish a port. */
  readonly hasDefaultBridge: boolean;
  readonly env: NodeJS.ProcessEnv;
}

export type Found = { kind: "engine"; engine: Engine } | { kind: "none"; reasons: string[] };

/** `env_file` with `required: false` came with 2.24. */
const oldestCompose = [2, 24] as const;

export interface FindOptions {
  /** Whether what is missing may be fetched, into the cache folder. */
  mayFetch: boolean;
  say: (line: string) => void;
}

export async function findEngine({ mayFetch, say }: FindOptions): Promise<Found> {
  const existing = await look(process.env);
  if (typeof existing !== "string") {
    const buildNetwork = process.env.COMPOSE_TEST_BUILD_NETWORK === "host" ? "host" : undefined;
    const stays = async () => undefined;
    return {
      kind: "engine",
      engine: { ...existing, buildNetwork, hasDefaultBridge: true, [Symbol.asyncDispose]: stays },
    };
  }
  const reasons = [`the machine's own: ${existing}`];
  const refuse = (reason: string): Found => ({ kind: "none", reasons: [...reasons, reason] });
  if (!mayFetch) return refuse("one of our own: fetching is not allowed (COMPOSE_TEST_FETCH=no)");
  if (process.platform !== "linux") return refuse(`one of our own: needs Linux, this is ${process.platform}`);
  if (process.getuid?.() !== 0) return refuse("one of our own: starting dockerd needs root");
  let daemon: Daemon;
  try {
    daemon = await startDaemon(await enginePackages(say));
  } catch (error) {
    return refuse(`one of our own: ${error instanceof Error ? error.message : String(error)}`);
  }
  const own = await look(daemon.env);
  if (typeof own === "string") {
    await daemon[Symbol.asyncDispose]();
    return refuse(`one of our own: ${own}`);
  }
  const description = `${own.description}, started for this test`;
  const stop = () => daemon[Symbol.asyncDispose]();
  return {
    kind: "engine",
    engine: {
      ...own,
      description,
      buildNetwork: "host",
      hasDefaultBridge: daemon.hasDefaultBridge,
      [Symbol.asyncDispose]: stop,
    },
  };
}

/** The engine this environment leads to, or why there is none. */
async function look(
  env: NodeJS.ProcessEnv,
): Promise<{ description: string; env: NodeJS.ProcessEnv } | string> {
  const info = await attempt("docker", ["info", "--format", "{{.ServerVersion}}, {{.Driver}}"], {
    env,
    timeoutMs: 20_000,
  });
  if (info.code !== 0) return lastLine(info.stderr);
  const version = await attempt("docker", ["compose", "version", "--short"], { env });
  if (version.code !== 0) return `Docker ${info.stdout.trim()} has no compose v2`;
  const [major = 0, minor = 0] = version.stdout.trim().replace(/^v/, "").split(".").map(Number);
  const [oldestMajor, oldestMinor] = oldestCompose;
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
    return `compose ${version.stdout.trim()} is older than ${oldestCompose.join(".")}`;
  }
  return { env, description: `Docker ${info.stdout.trim()}, compose ${version.stdout.trim()}` };
}

export const docker = (engine: Engine, ...args: string[]): Promise<string> =>
  command("docker", args, { env: engine.env });
