/**
 * Finds the server to talk to: an option, a named context, NATS_URL, the `holdfast dev` of this folder, the
 * current context.
 */
import { resolve } from "node:path";
import { Fault } from "../../../shared/errors/index.ts";
import { defaultDataDir } from "../../../shared/runtime/index.ts";
import { type Context, Contexts, readDevFile } from "../../../shared/sdk/where/index.ts";
import { type EngineConfig, type Environment, readConfig } from "../../config.ts";

export interface NatsChoice {
  natsUrl?: string | undefined;
  prefix?: string | undefined;
  dataDir?: string | undefined;
  context?: string | undefined;
}

export interface Found {
  env: Environment;
  /** Where the address was found, for messages. */
  from: string;
  dashboard?: string | undefined;
}

const login = [
  "NATS_USER",
  "NATS_PASSWORD",
  "NATS_PASSWORD_FILE",
  "NATS_TOKEN",
  "NATS_CREDS",
  "NATS_NKEY",
] as const;

/**
 * A running `dev` of this folder comes before the current context: a command tried here by mistake then does
 * no harm to a real installation. With `implicit` false only a server the user named counts: a service joins
 * no other.
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

/** A context brings its own credentials, or none. */
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
