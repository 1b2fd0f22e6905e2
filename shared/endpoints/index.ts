export { startEndpoints } from "./endpoints.ts";
