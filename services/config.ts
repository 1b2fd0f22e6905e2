/** Settings of every service, from the environment, read once, checked whole, frozen. The complaint names the variable. */
import { z } from "zod";
import { firstGeneration, newestGeneration, tokenPattern, tokenRule } from "../schemas/index.ts";
import { Fault } from "../shared/errors/index.ts";
import { addressRule, isAddress, maskUrl } from "../shared/runtime/server-address.ts";
import { deploymentSettings } from "./deployment.ts";
import { misspelt } from "./misspelt.ts";
import { setting } from "./setting.ts";

const { oneOf, wholeNumber } = setting;

/** What all services understand. The keys are the variables' names. */
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
  NATS_TOKEN: z.string().optional().describe("Log in with a token instead."),
  NATS_CREDS: z.string().optional().describe("Log in with a credentials file instead: its path."),
  NATS_WAIT: setting
    .durationOrForever(0, 24 * 3_600_000)
    .default(30_000)
    .describe(
      "How long a service that starts waits for a NATS server that is not there. `forever`: until it is.",
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
    .describe("Whether a new instance gets a stream of its own for its history."),
  HISTORY_MAX_STREAMS: wholeNumber(0, 100_000)
    .default(2000)
    .describe("Own streams at a time; beyond it new instances share."),
  HISTORY_SHARDS: wholeNumber(1, 256)
    .default(16)
    .describe("Shared history streams. The same everywhere, for ever."),
  HOLDFAST_GENERATION: wholeNumber(firstGeneration, newestGeneration)
    .default(newestGeneration)
    .describe(
      "Newest generation of messages this process lets the installation write. Set it to the one before while you upgrade, and going back stays possible: see docs/upgrading.md.",
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

export interface NatsSettings {
  url: string | undefined;
  /** How long a service that starts waits for it. */
  waitMs: number;
  user?: string;
  password?: string;
  token?: string;
  credsFile?: string;
}

export interface EngineConfig {
  readonly nats: Readonly<NatsSettings>;
  readonly prefix: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly generation: number;
  readonly history: {
    readonly layout: "per-instance" | "shared";
    readonly maxOwnStreams: number;
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

/** Names that belong to one service alone begin so; the others let them pass. */
const ownPrefixes = ["ORCHESTRATOR", "WORKER", "WATCHER", "GATEWAY", "CLI", "TEST"].map(
  (service) => `HOLDFAST_${service}_`,
);

/** `own` are the settings of the one service that asks, by the variables' names. */
export function readConfig<S extends SettingsShape = Record<never, never>>(
  env: Environment,
  service: string,
  own?: S,
): { config: EngineConfig; settings: SettingsOf<S> } {
  const shape: SettingsShape = { ...commonSettings, ...own };
  refuseUnknown(env, service, shape);
  // An empty variable is one that compose passed through unset.
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
  refuseContradiction(nats);
  return {
    nats: Object.freeze(nats),
    prefix: values.HOLDFAST_PREFIX,
    partitions: values.HOLDFAST_PARTITIONS,
    replicas: values.NATS_REPLICAS,
    generation: values.HOLDFAST_GENERATION,
    history: Object.freeze({
      layout: values.HISTORY_LAYOUT,
      maxOwnStreams: values.HISTORY_MAX_STREAMS,
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
  ].filter((way) => way !== false);
  if (ways.length > 1) {
    throw new Fault("config", {
      code: "invalid_config",
      message: `${ways.join(" and ")} are set together: only one way to log in can be used`,
    });
  }
  if ((nats.user === undefined) !== (nats.password === undefined)) {
    throw new Fault("config", {
      code: "invalid_config",
      message: "NATS_USER and NATS_PASSWORD belong together: only one of them is set",
    });
  }
}

function refuseUnknown(env: Environment, service: string, shape: SettingsShape): void {
  const mine = `HOLDFAST_${service.toUpperCase()}_`;
  // Unset, as everywhere: a setting passed through empty is what its misspelt name was meant for.
  const given = Object.keys(env).filter((name) => env[name]);
  const known = Object.keys(shape);
  // A family of names is ours where a setting of the service that asks belongs to it.
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
