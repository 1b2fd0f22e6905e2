export { type EndpointsOptions, startEndpoints } from "./endpoints.ts";
