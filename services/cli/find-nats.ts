import { resolve } from "node:path";
import { Fault } from "../../shared/errors/index.ts";
import { type EngineConfig, type Environment, readConfig } from "../config.ts";
import { defaultDataDir, readDevFile } from "./dev-file.ts";

export interface NatsChoice {
  natsUrl?: string | undefined;
  prefix?: string | undefined;
  dataDir?: string | undefined;
}

/** The server to talk to: the option, NATS_URL, or the `holdfast dev` that runs in this folder. */
export function findNats(choice: NatsChoice, env: Environment): Environment {
  const named = choice.natsUrl ?? env.NATS_URL;
  const prefix = choice.prefix === undefined ? {} : { HOLDFAST_PREFIX: choice.prefix };
  if (named) return { ...env, ...prefix, NATS_URL: named };
  const dataDir = choice.dataDir ?? defaultDataDir;
  const dev = readDevFile(dataDir);
  if (dev) return { ...env, HOLDFAST_PREFIX: dev.prefix, ...prefix, NATS_URL: dev.natsUrl };
  throw new Fault("config", {
    code: "nats_url_missing",
    message: `no NATS server given, and no \`holdfast dev\` is running on ${resolve(dataDir)}`,
    hint: "Use --nats-url or NATS_URL, name its data folder with --data-dir, or start `holdfast dev --app <module>`.",
  });
}

export const cliConfig = (choice: NatsChoice, env: Environment): EngineConfig =>
  readConfig(findNats(choice, env), "cli").config;
