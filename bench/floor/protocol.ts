/** The messages between the processes of the floor. */
import { type Layout, layouts } from "../options.ts";

/** Body of a start. */
export interface FloorStart {
  steps: number;
  /** Steps of this instance at a time. */
  width: number;
  /** All its work goes to this one. */
  worker: number;
  /** Does nothing before a signal comes. */
  waits: boolean;
  /** Each step is a request to the worker and one append, nothing else is stored; one step at a time. */
  direct: boolean;
}

/** Body of the notice at the end. */
export interface FloorEnd {
  /** Times at which the worker got each task. */
  stamps: number[];
  /** Time at which the signal came; 0 without one. */
  signalAt: number;
}

export interface FloorSettings {
  url: string;
  layout: Layout;
  worker: number;
}

/** Given to a floor process as its first argument. */
export function floorSettings(): FloorSettings {
  const { url, layout, worker } = JSON.parse(process.argv[2] ?? "{}") as Partial<FloorSettings>;
  if (url === undefined || !layouts.some((known) => known === layout)) throw new Error("not for direct use");
  return { url, layout: layout ?? "shared", worker: worker ?? 0 };
}

/** Sizes of the engine's own messages for a step with a small input. */
export const bodyBytes = { event: 230, task: 190, report: 120 };

const zeros = Buffer.alloc(1024 * 1024, "0");

/** A body of that size, made without work: the floor serialises nothing. */
export const padding = (bytes: number): Uint8Array => zeros.subarray(0, bytes);
