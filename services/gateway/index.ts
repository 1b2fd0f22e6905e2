export { defaultGatewayConfig, type GatewayConfig, gatewayConfig, gatewaySettings } from "./config.ts";
export { Gateway, type GatewayOptions } from "./gateway.ts";
export { PortListener } from "./http/port-listener.ts";
