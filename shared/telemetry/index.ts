export { PulseSender, pulseBucket } from "./pulse.ts";
export { bounded } from "./record.ts";
export { Telemetry } from "./telemetry.ts";
