/** The server to talk to: an option, a named context, NATS_URL, the `holdfast dev` of this folder, the current context. */
import { resolve } from "node:path";
import { Fault } from "../../../shared/errors/index.ts";
import { defaultDataDir } from "../../../shared/runtime/data-dir.ts";
import { type Context, Contexts } from "../../../shared/sdk/where/contexts.ts";
import { readDevFile } from "../../../shared/sdk/where/dev-file.ts";
import { type EngineConfig, type Environment, readConfig } from "../../config.ts";

export interface NatsChoice {
  natsUrl?: string | undefined;
  prefix?: string | undefined;
  dataDir?: string | undefined;
  context?: string | undefined;
}

export interface Found {
  env: Environment;
  /** Who said so. */
  from: string;
  dashboard?: string | undefined;
}

const login = ["NATS_USER", "NATS_PASSWORD", "NATS_TOKEN", "NATS_CREDS"] as const;

/**
 * A running `dev` of this folder comes before the current context: what is tried out here by mistake does no harm
 * there. `implicit`: also what nobody named; a service joins only what it was told to join.
 */
export function findServer(choice: NatsChoice, env: Environment, { implicit = true } = {}): Found {
  const prefix = choice.prefix === undefined ? {} : { HOLDFAST_PREFIX: choice.prefix };
  const found = (more: Environment, from: string, dashboard?: string): Found => ({
    env: { ...env, ...more, ...prefix },
    from,
    ...(dashboard === undefined ? {} : { dashboard }),
  });
  if (choice.natsUrl) return found({ NATS_URL: choice.natsUrl }, "--nats-url");
  if (choice.context !== undefined) {
    const context = new Contexts(env).get(choice.context);
    return found(settingsOf(context), `context ${choice.context}`);
  }
  if (env.NATS_URL && choice.dataDir === undefined) return found({}, "NATS_URL");
  const dataDir = choice.dataDir ?? defaultDataDir;
  const dev = readDevFile(dataDir);
  if (dev) {
    const settings = { HOLDFAST_PREFIX: dev.prefix, NATS_URL: dev.natsUrl };
    return found(settings, `holdfast dev of ${dataDir}`, dev.dashboard);
  }
  const current = implicit && choice.dataDir === undefined ? new Contexts(env).current() : undefined;
  if (current) return found(settingsOf(current.context), `current context ${current.name}`);
  throw new Fault("config", {
    code: "nats_url_missing",
    message: `no NATS server given, and no \`holdfast dev\` is running on ${resolve(dataDir)}`,
    hint: "Use --nats-url, --context or NATS_URL, name its data folder with --data-dir, or start `holdfast dev --app <module>`.",
  });
}

/** A context brings its own way to log in, or none. */
function settingsOf({ natsUrl, creds, prefix }: Context): Environment {
  const none = Object.fromEntries(login.map((name) => [name, undefined]));
  return { ...none, NATS_URL: natsUrl, NATS_CREDS: creds, HOLDFAST_PREFIX: prefix ?? "" };
}

export const findNats = (choice: NatsChoice, env: Environment): Environment =>
  findServer(choice, env, { implicit: false }).env;

export function cliConfig(choice: NatsChoice, env: Environment): Found & { config: EngineConfig } {
  const found = findServer(choice, env);
  return { ...found, config: readConfig(found.env, "cli").config };
}
