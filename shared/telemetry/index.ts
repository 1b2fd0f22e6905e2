export { PulseSender, pulseBucket } from "./pulse.ts";
export { bounded } from "./record.ts";
export { Telemetry, type TelemetryOptions } from "./telemetry.ts";
