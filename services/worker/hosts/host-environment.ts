/**
 * The environment of a host: the worker's own without its secrets, its share of the cores, its own GPUs. Users' code
 * in a host has no connection to NATS and gets no key for one; a type that needs one names it in its own `env`.
 */
import { availableParallelism } from "node:os";
import { gpuAssignment, threadLimits } from "../../../shared/inference/index.ts";
import { withoutLogin } from "../../../shared/runtime/index.ts";

/** Assumes that of more hosts than this, some are idle. */
const mostBusy = 8;

/** Variables with which the worker logs in, and others that only services need. Hosts do not get them. */
const secrets = [
  "NATS_USER",
  "NATS_PASSWORD",
  "NATS_PASSWORD_FILE",
  "NATS_TOKEN",
  "NATS_CREDS",
  "NATS_NKEY",
  "NATS_TLS_KEY",
  "GATEWAY_TOKENS",
  "GATEWAY_TOKENS_FILE",
];

function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const rest = Object.entries(env).filter(([name]) => !secrets.includes(name));
  const { NATS_URL } = env;
  return { ...Object.fromEntries(rest), ...(NATS_URL && { NATS_URL: withoutLogin(NATS_URL) }) };
}

export function hostEnvironment(
  hostIndex: number,
  options: {
    maxSessions: number;
    resources: Readonly<Record<string, number>>;
    /** The session type's own variables. */
    env?: Readonly<Record<string, string>> | undefined;
  },
): NodeJS.ProcessEnv {
  const inherited = withoutSecrets(process.env);
  const hosts = Math.min(options.maxSessions, mostBusy, availableParallelism());
  const limits = threadLimits({ cores: availableParallelism(), hosts });
  const { gpu } = options.resources;
  const devices =
    inherited.CUDA_VISIBLE_DEVICES?.split(",").filter((device) => device !== "") ??
    Array.from({ length: gpu ?? 0 }, (_, index) => String(index));
  // A worker without a GPU setting keeps the GPUs of its own environment.
  const gpus = gpu === undefined ? {} : gpuAssignment({ devices, hostIndex }).env;
  // The user's variables for the worker take precedence over the computed share; the type's take precedence
  // over both.
  return { ...limits.env, ...inherited, ...gpus, ...options.env };
}

/** Types that declare themselves not thread-safe are checked everywhere but in production. */
export const checksThreadSafety = (): boolean => process.env.NODE_ENV !== "production";

/** The share of the cores as a number, for libraries that read no variable, such as onnxruntime. */
export const threadsOf = ({ OMP_NUM_THREADS: limit }: NodeJS.ProcessEnv): number =>
  Math.max(1, Math.floor(Number(limit)) || 1);
