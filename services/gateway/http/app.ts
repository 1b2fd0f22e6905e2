/** The HTTP application in one function: guards, health, metrics, routes, live events, dashboard. */

import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { routePath } from "hono/route";
import { HoldfastError, isFault } from "../../../shared/errors/index.ts";
import type { FleetView } from "../../../shared/fleet/index.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import type { HttpMetrics } from "../gauges.ts";
import type { Broadcast } from "../live/broadcast.ts";
import { allRoutes, type GatewayParts, openApiOf } from "../routes/index.ts";
import { RateLimit } from "../security/index.ts";
import { requireScope } from "./admission.ts";
import { serveCallStream } from "./call-stream.ts";
import { serveEvents } from "./events.ts";
import { hostGuard, identify, rateGuard, requireOwnPage, requireRole, requireWritable } from "./guards.ts";
import { serveInstanceStream } from "./instance-stream.ts";
import { addOidcLogin } from "./oidc-login.ts";
import { addErrorsAndHeaders, addProbes, type Readiness } from "./probes.ts";
import { Problem } from "./problem.ts";
import type { Caller, RouteSpec } from "./route.ts";
import { serveRoute } from "./serve-route.ts";
import { serveDashboard } from "./static-files.ts";

interface AppOptions {
  parts: GatewayParts;
  broadcast: Broadcast;
  dashboardDir: string;
  http: HttpMetrics;
  /** Prometheus text. */
  metrics(): Promise<string>;
  ready(): Readiness;
  generation(): FleetView;
}

/**
 * For the guard of `/api/events` and `/metrics`, which do not answer with JSON and so are not in the list of
 * routes.
 */
const viewing = { id: "viewing", role: "viewer" } as const satisfies Pick<RouteSpec, "id" | "role">;

export function gatewayApp(options: AppOptions): Hono {
  const { parts } = options;
  const { config, runtime, access, origins } = parts;
  const app = new Hono();
  const perCaller = new RateLimit(runtime.clock, {
    perSecond: config.requestsPerSecond,
    burst: config.requestsPerSecond * 4,
  });
  const caller = (c: Parameters<typeof identify>[0]) =>
    identify(c, { access, origins, now: () => runtime.clock.now(), wrongTokens: parts.wrongTokens });
  const orchestrationOf = (instanceId: string) => nameOfInstance(parts.client, instanceId);
  /** Admits callers of addresses that do not answer with JSON. */
  const admit = async (c: Context, operation: string, instanceId?: string): Promise<Caller> => {
    const who = requireRole(viewing, caller(c)) as Caller;
    await requireScope(who.scope, { operation, instanceId }, orchestrationOf);
    return who;
  };

  addErrorsAndHeaders(app, runtime);
  app.use(async (c, next) => {
    const began = runtime.clock.monotonic();
    await next();
    // The route's pattern, never the address, which contains ids.
    const route = c.req.path.startsWith("/api/") ? routePath(c) : "page";
    options.http.observe(route, c.req.method, c.res.status, (runtime.clock.monotonic() - began) / 1000);
  });

  addProbes(app, { version: parts.version, ready: options.ready, generation: options.generation });

  app.use(hostGuard(config.allowedHosts));
  app.get("/metrics", async (c) => {
    await admit(c, "metrics");
    return c.text(await options.metrics(), 200, {
      "content-type": "text/plain; version=0.0.4; charset=utf-8",
    });
  });

  app.use("/api/*", rateGuard(perCaller, origins));
  app.use(
    "/api/*",
    bodyLimit({
      maxSize: config.maxBodyBytes,
      onError: () => {
        throw new Problem({
          status: 413,
          code: "payload_too_large",
          message: `The body is larger than ${config.maxBodyBytes} bytes`,
          hint: "GATEWAY_MAX_BODY_BYTES sets the limit.",
        });
      },
    }),
  );
  const routes = allRoutes(parts);
  const document = openApiOf(routes, parts.version);
  const server = {
    caller,
    origins,
    orchestrationOf,
    readOnly: config.readOnly,
    busConnected: () => parts.bus.connected(),
    audit: parts.audit,
  };
  app.get("/api/openapi.json", (c) => c.json(document));
  addOidcLogin(app, parts);
  app.get(
    "/api/instances/:id/stream",
    serveInstanceStream({
      client: parts.client,
      admit: async (c, instanceId) => {
        const who = await admit(c, "getStream", instanceId);
        if (who.payloads) await parts.audit.read(who, { action: "getStream", target: instanceId });
        return who;
      },
      busConnected: server.busConnected,
    }),
  );
  const callKey = routes.find(({ id }) => id === "callKey") as RouteSpec;
  app.post(
    "/api/sessions/:type/:key/:call",
    serveCallStream({
      client: parts.client,
      busConnected: server.busConnected,
      admit: async (c, target) => {
        requireOwnPage(c);
        const who = requireRole(callKey, caller(c)) as Caller;
        requireWritable(callKey, config.readOnly);
        await requireScope(who.scope, { operation: callKey.id }, orchestrationOf);
        const audited = callKey.audit?.({ params: target, query: {}, body: {} });
        if (audited) await parts.audit.asked(who, { action: callKey.id, ...audited });
        return who;
      },
    }),
  );
  for (const spec of routes) app.on(spec.method, spec.path, serveRoute(spec, server));
  app.get(
    "/api/events",
    serveEvents({
      broadcast: options.broadcast,
      histories: parts.histories,
      overview: parts.overview,
      admit: (c, instanceId) => admit(c, "events", instanceId),
      recordRead: (who, target) => parts.audit.read(who, { action: "events", target }, "list"),
      busConnected: server.busConnected,
      onReconnected: (listener) =>
        parts.bus.onState(({ kind }) => {
          if (kind === "reconnected") listener();
        }),
    }),
  );
  app.all("/api/*", (c) => {
    throw noSuchRoute(c.req.method, c.req.path);
  });
  app.get("*", serveDashboard(options.dashboardDir));
  return app;
}

const nameOfInstance = (client: Client, instanceId: string): Promise<string | undefined> =>
  client.status(instanceId, { largestBytes: 0 }).then(
    ({ name }) => name,
    (error: unknown) => {
      if (isFault(error) || error instanceof HoldfastError) return undefined;
      throw error;
    },
  );

const noSuchRoute = (method: string, path: string): Problem =>
  new Problem({
    status: 404,
    code: "no_such_route",
    message: `${method} ${path.slice(0, 200)} is not a route of this gateway`,
    hint: "See /api/openapi.json.",
  });
