import type { HostPlace, HostSession } from "../../hosts/index.ts";

/** A state and where it lives. */
export interface Housed {
  readonly state: HostSession;
  readonly place: HostPlace;
  readonly warm: boolean;
  readonly restored: boolean;
}
