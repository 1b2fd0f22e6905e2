/**
 * The devices on which onnxruntime can run from Node. `auto` is Holdfast's own: the library's `auto` never
 * falls back.
 */
export const devices = ["auto", "cpu", "cuda", "webgpu", "dml", "coreml"] as const;
/** A device, or `auto`: a GPU if there is one. */
export type Device = (typeof devices)[number];
/** A device that inference runs on. */
export type ConcreteDevice = Exclude<Device, "auto">;

/**
 * The devices to try, best first. A caller that names a device gets that one or an error: a job planned for a
 * GPU that silently runs on a CPU is an outage that no one sees. `auto` and `fallback` allow it, and the
 * reason is kept.
 */
export function devicePlan(device: Device, fallback: boolean): ConcreteDevice[] {
  if (device === "auto") return ["cuda", "cpu"];
  return fallback && device !== "cpu" ? [device, "cpu"] : [device];
}
