/**
 * Answers until NATS was reached for the first time (GATEWAY-5): alive, not ready, and the dashboard says
 * why.
 */
import { Hono } from "hono";
import type { Runtime } from "../../../shared/runtime/index.ts";
import { hostGuard } from "./guards.ts";
import { addErrorsAndHeaders, addProbes } from "./probes.ts";
import { busAway } from "./problem.ts";
import { serveDashboard } from "./static-files.ts";

interface WaitingOptions {
  runtime: Runtime;
  version: string;
  allowedHosts: readonly string[];
  dashboardDir: string;
}

export function waitingApp(options: WaitingOptions): Hono {
  const app = new Hono();
  addErrorsAndHeaders(app, options.runtime);
  addProbes(app, {
    version: options.version,
    ready: () => ({ ready: false, why: "NATS is away: it has not answered since the gateway started" }),
  });
  app.use(hostGuard(options.allowedHosts));
  const away = () => {
    throw busAway();
  };
  app.all("/api/*", away);
  app.get("/metrics", away);
  app.get("*", serveDashboard(options.dashboardDir));
  return app;
}
