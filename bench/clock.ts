/** Milliseconds on the machine's own monotonic clock: the same for all processes, so stamps of two can be compared. */
export const machineMs = (): number => Number(process.hrtime.bigint()) / 1e6;
