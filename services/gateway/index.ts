export { defaultGatewayConfig, type GatewayConfig } from "./config.ts";
export { Gateway } from "./gateway.ts";
export { PortListener } from "./http/port-listener.ts";
