export { SessionService } from "./service.ts";
export { defaultTiming, type SessionDeps, type SessionTiming } from "./session-deps.ts";
