import type { InstanceRow } from "../../api.ts";

/** One page of the list of orchestrations. */
export interface InstanceList {
  rows: InstanceRow[];
  cursor?: string;
  matching: number;
}
