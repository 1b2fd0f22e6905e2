import type { HostPlace, HostSession } from "../../hosts/index.ts";

/** A session's state with its place in a host. */
export interface PlacedState {
  readonly state: HostSession;
  readonly place: HostPlace;
  readonly warm: boolean;
  readonly restored: boolean;
}
