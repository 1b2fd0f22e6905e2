export { SessionService } from "./service.ts";
export type { SessionTiming } from "./session-deps.ts";
