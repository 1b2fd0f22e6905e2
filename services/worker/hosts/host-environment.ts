/** What a host inherits: the worker's environment, its share of the cores, its own GPUs. */
import { availableParallelism } from "node:os";
import { gpuAssignment, threadLimits } from "../../../shared/inference/index.ts";

/** Hosts beyond this many do not all compute at once. */
const mostBusy = 8;

export function hostEnvironment(
  hostIndex: number,
  options: {
    maxSessions: number;
    resources: Readonly<Record<string, number>>;
    /** Of the session type. */
    env?: Readonly<Record<string, string>> | undefined;
  },
): NodeJS.ProcessEnv {
  const inherited = process.env;
  const hosts = Math.min(options.maxSessions, mostBusy, availableParallelism());
  const limits = threadLimits({ cores: availableParallelism(), hosts });
  const { gpu } = options.resources;
  const devices =
    inherited.CUDA_VISIBLE_DEVICES?.split(",").filter((device) => device !== "") ??
    Array.from({ length: gpu ?? 0 }, (_, index) => String(index));
  // A worker that says nothing about GPUs leaves the choice to whoever started it.
  const gpus = gpu === undefined ? {} : gpuAssignment({ devices, hostIndex }).env;
  // What the user set for the worker beats our share; what the type says beats both.
  return { ...limits.env, ...inherited, ...gpus, ...options.env };
}

/** Everywhere but in production, types that say they are not thread-safe are held to it. */
export const checksThreadSafety = (): boolean => process.env.NODE_ENV !== "production";

/** For libraries that read no variable, onnxruntime among them. */
export const threadsOf = ({ OMP_NUM_THREADS: limit }: NodeJS.ProcessEnv): number =>
  Math.max(1, Math.floor(Number(limit)) || 1);
