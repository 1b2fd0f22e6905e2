/** What the watching thread writes down. Apart from what reads it, which needs more than that thread should load. */
import { encode } from "../../../shared/bus/index.ts";

export const runawayKey = (instanceId: string): string => `runaway.${instanceId}`;

export const noteOf = (build: string, ms: number): Uint8Array => encode({ build, ms });
