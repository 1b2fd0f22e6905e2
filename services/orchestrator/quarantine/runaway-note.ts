/**
 * The note that the watchdog thread writes. In a file of its own, because the code that reads notes needs
 * more than that thread should load.
 */
import { encode } from "../../../shared/bus/index.ts";

export const runawayKey = (instanceId: string): string => `runaway.${instanceId}`;

export const noteOf = (build: string, ms: number): Uint8Array => encode({ build, ms });
