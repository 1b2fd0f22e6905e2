/** The input of `gpuAssignment`. */
export interface GpuAssignmentInput {
  /**
   * The worker's GPUs, from its `resources`: indices or UUIDs as `nvidia-smi -L` prints them. Empty: none.
   */
  devices: readonly string[];
  /** The number of this host on its worker, counted from 0. */
  hostIndex: number;
  /** How many GPUs one host needs. If there are fewer, the host gets all of them. */
  devicesPerHost?: number | undefined;
}

/** The GPUs a host may see. */
export interface GpuAssignment {
  devices: readonly string[];
  env: { CUDA_VISIBLE_DEVICES: string };
}

/**
 * Assigns a worker's GPUs to its hosts, in turn. A host sees only its own GPUs and knows them as 0, 1, …, so user code never
 * chooses a device by number. For a worker without GPUs the variable is empty, which hides all GPUs: a CPU
 * worker on a GPU machine must not allocate on a device that another worker was given.
 *
 * @example
 * ```ts
 * gpuAssignment({ devices: ["0", "1"], hostIndex: 1 }).env; // { CUDA_VISIBLE_DEVICES: "1" }
 * ```
 */
export function gpuAssignment({ devices, hostIndex, devicesPerHost = 1 }: GpuAssignmentInput): GpuAssignment {
  const wanted = Math.min(devices.length, devicesPerHost);
  const first = hostIndex * wanted;
  const own = Array.from({ length: wanted }, (_, offset) => devices[(first + offset) % devices.length] ?? "");
  return { devices: own, env: { CUDA_VISIBLE_DEVICES: own.join(",") } };
}
