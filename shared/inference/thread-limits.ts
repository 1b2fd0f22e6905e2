/**
 * Every maths library starts one thread per core by default, so four hosts on eight cores would run 32
 * threads that only wait for each other. A library reads the variables when it is loaded: they must be in the
 * environment of a process before it starts, and a thread inherits those of its process.
 */
const variables = [
  "OMP_NUM_THREADS",
  "OPENBLAS_NUM_THREADS",
  "MKL_NUM_THREADS",
  "NUMEXPR_NUM_THREADS",
  "VECLIB_MAXIMUM_THREADS",
] as const;

/** An environment variable that limits the threads of a native library. */
export type ThreadLimitVariable = (typeof variables)[number];

/** The input of `threadLimits`. */
export interface ThreadLimitsInput {
  /** Cores of the machine, or of the container: `os.availableParallelism()`. */
  cores: number;
  /** Hosts (threads or child processes) that will compute at the same time. */
  hosts: number;
  /** Set by the user: takes precedence over the share of the cores. */
  threads?: number | undefined;
}

/** The environment that keeps numeric libraries to a host's share of the cores. */
export interface ThreadLimits {
  /** Also the number for onnxruntime's `intraOpNumThreads`, which reads no variable. */
  threads: number;
  env: Record<ThreadLimitVariable, string>;
}

/**
 * A fair share of the cores for one host, at least one. If there are two cores or more, one is left to the
 * worker's main thread (bus, leases).
 *
 * @example
 * ```ts
 * threadLimits({ cores: 8, hosts: 3 }).threads; // 2
 * ```
 */
export function threadLimits({ cores, hosts, threads }: ThreadLimitsInput): ThreadLimits {
  const usable = Math.max(1, atLeastOne(cores) - 1);
  const count =
    threads === undefined ? Math.max(1, Math.floor(usable / atLeastOne(hosts))) : atLeastOne(threads);
  const [omp, openblas, mkl, numexpr, veclib] = variables;
  const limit = String(count);
  return {
    threads: count,
    env: { [omp]: limit, [openblas]: limit, [mkl]: limit, [numexpr]: limit, [veclib]: limit },
  };
}

/**
 * Counts come from the system or from parsed config; a zero, a fraction or NaN still gives a working host.
 */
const atLeastOne = (count: number): number => Math.max(1, Math.floor(count) || 1);
