/** Settings of every service, from the environment, read once, checked whole, frozen. The complaint names the variable. */
import { z } from "zod";
import { tokenPattern, tokenRule } from "../schemas/index.ts";
import { Fault } from "../shared/errors/index.ts";

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`);

const oneOf = <const T extends readonly [string, ...string[]]>(...values: T) =>
  z.enum(values, `must be one of ${values.join(", ")}`);

/** Building blocks for the settings of a single service. Every value arrives as text. */
export const setting = {
  wholeNumber,
  oneOf,
  text: z.string(),
  flag: z
    .enum(["true", "false", "1", "0"], "must be true or false")
    .transform((value) => value === "true" || value === "1"),
  /** `a,b,c` */
  list: z.string().transform((value) =>
    value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  ),
};

/** What all services understand. The keys are the variables' names. */
export const commonSettings = {
  NATS_URL: z.string().min(1).optional(),
  NATS_USER: z.string().optional(),
  NATS_PASSWORD: z.string().optional(),
  NATS_TOKEN: z.string().optional(),
  /** Path of a credentials file. */
  NATS_CREDS: z.string().optional(),
  NATS_REPLICAS: wholeNumber(1, 5).default(1),
  HOLDFAST_PREFIX: z
    .string()
    .refine((value) => value === "" || tokenPattern.test(value), `must be empty or ${tokenRule}`)
    .default(""),
  HOLDFAST_PARTITIONS: wholeNumber(1, 1024).default(16),
  HOLDFAST_APP: z.string().optional(),
  HISTORY_LAYOUT: oneOf("per-instance", "shared").default("per-instance"),
  HISTORY_MAX_STREAMS: wholeNumber(0, 100_000).default(2000),
  HISTORY_SHARDS: wholeNumber(1, 256).default(16),
  /** Serves /metrics, /livez, /readyz and /version of the process; 0 takes a free port. Unset: not served. */
  METRICS_PORT: wholeNumber(0, 65_535).optional(),
  METRICS_HOST: z.string().min(1).default("127.0.0.1"),
  LOG_LEVEL: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent").default("info"),
};

export interface NatsSettings {
  url: string | undefined;
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
  readonly history: {
    readonly layout: "per-instance" | "shared";
    readonly maxOwnStreams: number;
    readonly shards: number;
  };
  readonly metrics: { readonly host: string; readonly port: number | undefined };
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
        : `${name}=${JSON.stringify(given[name])} ${issue.message}`;
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
  const nats: NatsSettings = { url: values.NATS_URL };
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
    history: Object.freeze({
      layout: values.HISTORY_LAYOUT,
      maxOwnStreams: values.HISTORY_MAX_STREAMS,
      shards: values.HISTORY_SHARDS,
    }),
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
  const unknown = Object.keys(env).filter(
    (name) =>
      name.startsWith("HOLDFAST_") &&
      !(name in shape) &&
      !ownPrefixes.some((prefix) => prefix !== mine && name.startsWith(prefix)),
  );
  if (unknown.length === 0) return;
  const known = Object.keys(shape).filter((name) => name.startsWith("HOLDFAST_"));
  throw new Fault("config", {
    code: "unknown_setting",
    message: `unknown setting${unknown.length > 1 ? "s" : ""} ${unknown.join(", ")}`,
    hint: `Known here: ${known.join(", ")}.`,
  });
}
