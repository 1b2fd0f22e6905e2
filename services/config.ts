/**
 * Settings of every service: read once from the environment, checked whole, frozen. An error names the
 * variable.
 */
import { z } from "zod";
import { firstGeneration, newestGeneration, tokenPattern, tokenRule } from "../schemas/index.ts";
import { Fault } from "../shared/errors/index.ts";
import { addressRule, isAddress, maskUrl } from "../shared/runtime/index.ts";
import { deploymentSettings } from "./deployment.ts";
import { misspelt } from "./misspelt.ts";
import { setting } from "./setting.ts";

const { oneOf, wholeNumber } = setting;

/** Settings that all services share. The keys are the variables' names. */
export const commonSettings = {
  NATS_URL: z
    .string()
    .refine(
      (value) => value.split(",").every((one) => isAddress(one.trim())),
      `${addressRule}, or several, separated by commas`,
    )
    .optional()
    .describe("Address of the NATS server; several, separated by commas, of a cluster."),
  NATS_USER: z.string().optional().describe("Log in with a name and `NATS_PASSWORD`."),
  NATS_PASSWORD: z.string().optional().describe("Belongs to `NATS_USER`."),
  NATS_PASSWORD_FILE: z
    .string()
    .optional()
    .describe("A file with the password, instead of `NATS_PASSWORD`: read again at each connection."),
  NATS_TOKEN: z.string().optional().describe("Log in with a token instead."),
  NATS_CREDS: z
    .string()
    .optional()
    .describe("Log in with a credentials file instead: its path. Read again at each connection."),
  NATS_NKEY: z
    .string()
    .optional()
    .describe("Log in with an nkey instead: path of the file with its seed. Read again at each connection."),
  NATS_TLS_CA: z
    .string()
    .optional()
    .describe("File with the certificate authority of the NATS server. Set: no connection without TLS."),
  NATS_TLS_CERT: z
    .string()
    .optional()
    .describe("File with the certificate this process shows the NATS server (mutual TLS)."),
  NATS_TLS_KEY: z.string().optional().describe("File with the key that belongs to `NATS_TLS_CERT`."),
  NATS_INBOX_PREFIX: z
    .string()
    .refine((value) => /^_INBOX[A-Za-z0-9_-]*$/.test(value), "must begin with _INBOX and be one token")
    .optional()
    .describe("What inboxes of this process begin with, where its NATS user may listen to those alone."),
  NATS_WAIT: setting
    .duration(0, 24 * 3_600_000, { orForever: true })
    .default(30_000)
    .describe(
      "How long a service that starts waits for a NATS server that is not there, or for a cluster that has no leader. `forever`: until it is there.",
    ),
  NATS_REPLICAS: wholeNumber(1, 5)
    .default(1)
    .describe("Copies of every stream and bucket. More than 1 needs a cluster of at least as many servers."),
  HOLDFAST_PREFIX: z
    .string()
    .refine((value) => value === "" || tokenPattern.test(value), `must be empty or ${tokenRule}`)
    .meta({ rule: `empty, or ${tokenRule}` })
    .default("")
    .describe(
      "Stands before every subject, stream and bucket, so that several installations share an account.",
    ),
  HOLDFAST_PROVISION: oneOf("auto", "never")
    .default("auto")
    .describe(
      "Whether this process makes streams and buckets that are missing. `never`: it only checks them, and `holdfast provision` makes them.",
    ),
  HOLDFAST_PARTITIONS: wholeNumber(1, 1024)
    .default(16)
    .describe(
      "Shares of all instances that orchestrators divide among themselves. The same everywhere, for ever.",
    ),
  HOLDFAST_APP: z
    .string()
    .optional()
    .describe("Your application: a module, or a folder with `app.ts` in it."),
  HISTORY_LAYOUT: oneOf("per-instance", "shared")
    .default("per-instance")
    .describe("Whether an instance gets a stream of its own for its history."),
  HISTORY_MAX_STREAMS: wholeNumber(0, 100_000)
    .default(2000)
    .describe("Own streams at a time; beyond it new instances share."),
  HISTORY_OWN_AFTER_MS: wholeNumber(0, 86_400_000)
    .default(1000)
    .describe(
      "An instance that has run for so long gets its own stream; until then it is in a shared one. 0: with its first commit, which makes short instances several times slower.",
    ),
  HISTORY_SHARDS: wholeNumber(1, 256)
    .default(16)
    .describe("Shared history streams. The same everywhere, for ever."),
  HOLDFAST_GENERATION: wholeNumber(firstGeneration, newestGeneration)
    .default(newestGeneration)
    .describe(
      "Newest generation of messages this process lets the installation write. Set it to the one before while you upgrade, and going back stays possible: see docs/upgrading.md.",
    ),
  HOLDFAST_OLDEST_GENERATION: wholeNumber(firstGeneration, newestGeneration)
    .default(firstGeneration)
    .describe(
      "Oldest generation of messages that is written, even if an older process says that it is alive. `holdfast security init` sets it to the newest: a hostile worker must not be able to switch capabilities off again.",
    ),
  METRICS_PORT: wholeNumber(0, 65_535)
    .optional()
    .describe(
      "Serves `/metrics`, `/livez`, `/readyz` and `/version` of the process, and is what `holdfast health` asks; 0 takes a free port. Unset: not served.",
    ),
  METRICS_HOST: z.string().min(1).default("127.0.0.1").describe("Address `METRICS_PORT` is opened on."),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url("must be an address like http://collector:4318")
    .optional()
    .describe("A collector that takes traces by OTLP over HTTP. Unset: none are made."),
  LOG_LEVEL: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent")
    .default("info")
    .describe("What reaches the log, JSON lines on stderr."),
};

interface NatsSettings {
  url: string | undefined;
  /** How long a starting service waits for NATS. */
  waitMs: number;
  user?: string;
  password?: string;
  token?: string;
  credsFile?: string;
  passwordFile?: string;
  nkeyFile?: string;
  inboxPrefix?: string;
  tls?: Readonly<{ caFile?: string; certFile?: string; keyFile?: string }>;
}

export interface EngineConfig {
  readonly nats: Readonly<NatsSettings>;
  readonly prefix: string;
  /** Creates what is missing on the server instead of only checking. */
  readonly provisions: boolean;
  readonly partitions: number;
  readonly replicas: number;
  readonly generation: number;
  /** Older ones are not written, whichever processes are alive. */
  readonly oldestGeneration: number;
  readonly history: {
    readonly layout: "per-instance" | "shared";
    readonly maxOwnStreams: number;
    readonly ownAfterMs: number;
    readonly shards: number;
  };
  readonly metrics: { readonly host: string; readonly port: number | undefined };
  readonly tracesEndpoint: string | undefined;
  readonly logLevel: string;
  readonly appPath: string | undefined;
}

export type SettingsShape = Record<string, z.ZodType>;
export type SettingsOf<S extends SettingsShape> = Readonly<z.infer<z.ZodObject<S>>>;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Prefixes of names that belong to one service alone; the other services ignore such names. */
const ownPrefixes = ["ORCHESTRATOR", "WORKER", "WATCHER", "GATEWAY", "CLI", "TEST"].map(
  (service) => `HOLDFAST_${service}_`,
);

/** `own`: the settings of the calling service, by variable name. */
export function readConfig<S extends SettingsShape = Record<never, never>>(
  env: Environment,
  service: string,
  own?: S,
): { config: EngineConfig; settings: SettingsOf<S> } {
  const shape: SettingsShape = { ...commonSettings, ...own };
  refuseUnknown(env, service, shape);
  // Compose passes an unset variable through as an empty one.
  const given = Object.fromEntries(
    Object.keys(shape).flatMap((name) => (env[name] ? [[name, env[name]]] : [])),
  );
  const parsed = z.object(shape).safeParse(given);
  if (!parsed.success) {
    const complaints = parsed.error.issues.map((issue) => {
      const name = String(issue.path[0] ?? "");
      return given[name] === undefined
        ? `${name} is not set`
        : `${name}=${JSON.stringify(maskUrl(given[name]))} ${issue.message}`;
    });
    throw new Fault("config", { code: "invalid_config", message: complaints.join("; ") });
  }
  const common = z.object(commonSettings).parse(given);
  return {
    config: Object.freeze(engineConfig(common)),
    settings: Object.freeze(parsed.data) as SettingsOf<S>,
  };
}

function engineConfig(values: z.infer<z.ZodObject<typeof commonSettings>>): EngineConfig {
  const nats: NatsSettings = { url: values.NATS_URL, waitMs: values.NATS_WAIT };
  if (values.NATS_USER !== undefined) nats.user = values.NATS_USER;
  if (values.NATS_PASSWORD !== undefined) nats.password = values.NATS_PASSWORD;
  if (values.NATS_TOKEN !== undefined) nats.token = values.NATS_TOKEN;
  if (values.NATS_CREDS !== undefined) nats.credsFile = values.NATS_CREDS;
  if (values.NATS_PASSWORD_FILE !== undefined) nats.passwordFile = values.NATS_PASSWORD_FILE;
  if (values.NATS_NKEY !== undefined) nats.nkeyFile = values.NATS_NKEY;
  if (values.NATS_INBOX_PREFIX !== undefined) nats.inboxPrefix = values.NATS_INBOX_PREFIX;
  const [caFile, certFile, keyFile] = [values.NATS_TLS_CA, values.NATS_TLS_CERT, values.NATS_TLS_KEY];
  if (caFile !== undefined || certFile !== undefined || keyFile !== undefined)
    nats.tls = Object.freeze({
      ...(caFile === undefined ? {} : { caFile }),
      ...(certFile === undefined ? {} : { certFile }),
      ...(keyFile === undefined ? {} : { keyFile }),
    });
  refuseContradiction(nats);
  return {
    nats: Object.freeze(nats),
    prefix: values.HOLDFAST_PREFIX,
    provisions: values.HOLDFAST_PROVISION === "auto",
    partitions: values.HOLDFAST_PARTITIONS,
    replicas: values.NATS_REPLICAS,
    generation: values.HOLDFAST_GENERATION,
    oldestGeneration: values.HOLDFAST_OLDEST_GENERATION,
    history: Object.freeze({
      layout: values.HISTORY_LAYOUT,
      maxOwnStreams: values.HISTORY_MAX_STREAMS,
      ownAfterMs: values.HISTORY_OWN_AFTER_MS,
      shards: values.HISTORY_SHARDS,
    }),
    tracesEndpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT,
    metrics: Object.freeze({ host: values.METRICS_HOST, port: values.METRICS_PORT }),
    logLevel: values.LOG_LEVEL,
    appPath: values.HOLDFAST_APP,
  };
}

function refuseContradiction(nats: NatsSettings): void {
  const ways = [
    nats.user !== undefined && "NATS_USER",
    nats.token !== undefined && "NATS_TOKEN",
    nats.credsFile !== undefined && "NATS_CREDS",
    nats.nkeyFile !== undefined && "NATS_NKEY",
  ].filter((way) => way !== false);
  if (ways.length > 1) {
    throw new Fault("config", {
      code: "invalid_config",
      message: `${ways.join(" and ")} are set together: only one way to log in can be used`,
    });
  }
  const passwords = [nats.password, nats.passwordFile].filter((one) => one !== undefined).length;
  if ((nats.user === undefined ? 0 : 1) !== passwords) {
    throw new Fault("config", {
      code: "invalid_config",
      message:
        passwords === 2
          ? "NATS_PASSWORD and NATS_PASSWORD_FILE are set together: only one of them can be used"
          : "NATS_USER and NATS_PASSWORD belong together: only one of them is set",
    });
  }
  if ((nats.tls?.certFile === undefined) !== (nats.tls?.keyFile === undefined)) {
    throw new Fault("config", {
      code: "invalid_config",
      message: "NATS_TLS_CERT and NATS_TLS_KEY belong together: only one of them is set",
    });
  }
}

function refuseUnknown(env: Environment, service: string, shape: SettingsShape): void {
  const mine = `HOLDFAST_${service.toUpperCase()}_`;
  // An empty variable counts as unset: the misspelt name was probably meant for that setting.
  const given = Object.keys(env).filter((name) => env[name]);
  const known = Object.keys(shape);
  // A family of names is checked only if the calling service has a setting in it.
  const families = ["HISTORY_", `${service.toUpperCase()}_`].filter((family) =>
    known.some((name) => name.startsWith(family)),
  );
  const unknown = given.filter(
    (name) =>
      !(name in shape) &&
      (families.some((family) => name.startsWith(family)) ||
        (name.startsWith("HOLDFAST_") &&
          !ownPrefixes.some((prefix) => prefix !== mine && name.startsWith(prefix)))),
  );
  const refused = [
    ...unknown,
    ...misspelt(given, [...known, ...Object.keys(deploymentSettings)]).filter(notAmong(unknown)),
  ];
  if (refused.length === 0) return;
  throw new Fault("config", {
    code: "unknown_setting",
    message: `unknown setting${refused.length > 1 ? "s" : ""} ${refused.join(", ")}`,
    hint: `Known here: ${known.join(", ")}.`,
  });
}

const notAmong = (names: readonly string[]) => (line: string) =>
  !names.some((name) => line.startsWith(`${name} `));
