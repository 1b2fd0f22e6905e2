/**
 * Finds the server for a program that names none: `NATS_URL`, the `holdfast dev` that runs in this folder, or
 * the current context. The order is that of the command line, so both reach the same installation.
 */
import { resolve } from "node:path";
import { Fault } from "../../errors/index.ts";
import { defaultDataDir } from "../../runtime/index.ts";
import { Contexts } from "./contexts.ts";
import { readDevFile } from "./dev-file.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Where {
  url: string | string[];
  prefix?: string | undefined;
  user?: string | undefined;
  pass?: string | undefined;
  token?: string | undefined;
  credsFile?: string | undefined;
  passFile?: string | undefined;
  nkeyFile?: string | undefined;
  inboxPrefix?: string | undefined;
  tls?: { caFile?: string; certFile?: string; keyFile?: string } | undefined;
}

function tlsOf({ NATS_TLS_CA, NATS_TLS_CERT, NATS_TLS_KEY }: Environment): Where["tls"] {
  if (!NATS_TLS_CA && !NATS_TLS_CERT) return undefined;
  return {
    ...(NATS_TLS_CA ? { caFile: NATS_TLS_CA } : {}),
    ...(NATS_TLS_CERT ? { certFile: NATS_TLS_CERT } : {}),
    ...(NATS_TLS_KEY ? { keyFile: NATS_TLS_KEY } : {}),
  };
}

export function whereToConnect(env: Environment = process.env, dataDir: string = defaultDataDir): Where {
  if (env.NATS_URL) {
    return {
      url: env.NATS_URL.split(",").map((one) => one.trim()),
      prefix: env.HOLDFAST_PREFIX,
      user: env.NATS_USER,
      pass: env.NATS_PASSWORD,
      token: env.NATS_TOKEN,
      credsFile: env.NATS_CREDS,
      passFile: env.NATS_PASSWORD_FILE,
      nkeyFile: env.NATS_NKEY,
      inboxPrefix: env.NATS_INBOX_PREFIX,
      tls: tlsOf(env),
    };
  }
  const dev = readDevFile(dataDir);
  if (dev) return { url: dev.natsUrl, prefix: dev.prefix };
  const current = new Contexts(env).current()?.context;
  if (current) return { url: current.natsUrl, credsFile: current.creds, prefix: current.prefix };
  throw new Fault("config", {
    code: "nats_url_missing",
    message: `no NATS server given, and no \`holdfast dev\` is running on ${resolve(dataDir)}`,
    hint: "Pass { url }, set NATS_URL, choose a context (`holdfast context use`), or start `holdfast dev --app <module>` in this folder.",
  });
}
