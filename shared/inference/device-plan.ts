/** What onnxruntime can run on from Node. `auto` is ours: the library's own never falls back. */
export const devices = ["auto", "cpu", "cuda", "webgpu", "dml", "coreml"] as const;
export type Device = (typeof devices)[number];
export type ConcreteDevice = Exclude<Device, "auto">;

/**
 * The devices to try, best first. Who names a device gets that one or an error: a job planned for a GPU that
 * quietly runs on a CPU is an outage nobody sees. `auto` and `fallback` allow it and the reason is kept.
 */
export function devicePlan(device: Device, fallback: boolean): ConcreteDevice[] {
  if (device === "auto") return ["cuda", "cpu"];
  return fallback && device !== "cpu" ? [device, "cpu"] : [device];
}
