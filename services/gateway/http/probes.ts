/**
 * Answered for every caller at any time: whether the process lives, whether it serves, which version it is.
 */
import type { Hono } from "hono";
import type { FleetView } from "../../../shared/fleet/index.ts";
import { announceFault, type Runtime } from "../../../shared/runtime/index.ts";
import { securityHeaders } from "./guards.ts";
import { isUnexpected, toProblem } from "./problem.ts";

export interface Readiness {
  ready: boolean;
  why?: string;
}

interface ProbeOptions {
  version: string;
  ready(): Readiness;
  /** Undefined: not known yet. */
  generation?(): FleetView;
}

/**
 * Probes come from the machine itself, by its address: no token, no host check, and never a secret in the
 * answer.
 */
export function addProbes(app: Hono, options: ProbeOptions): void {
  app.get("/livez", (c) => c.json({ ok: true }));
  app.get("/readyz", (c) => {
    const { ready, why } = options.ready();
    return c.json({ ok: ready, ...(why === undefined ? {} : { why }) }, ready ? 200 : 503);
  });
  app.get("/version", (c) => {
    const { written, newest, heldBackBy } = options.generation?.() ?? {};
    // Every caller may see the number of processes; their ids are only in the overview, which requires a
    // token.
    const generation = { written, newest, heldBackBy: heldBackBy?.length };
    return c.json({
      name: "holdfast",
      version: options.version,
      ...(written !== undefined && { generation }),
    });
  });
}

/** Answers every thrown error as a problem, and sets the browser's security headers on every answer. */
export function addErrorsAndHeaders(app: Hono, runtime: Runtime): void {
  app.onError((error, c) => {
    if (isUnexpected(error))
      announceFault(runtime, "gateway", error, { code: "request_failed", about: c.req.path });
    const problem = toProblem(error);
    const { status, retryAfterSeconds } = problem.init;
    if (retryAfterSeconds !== undefined) c.header("retry-after", String(retryAfterSeconds));
    if (status === 401) c.header("www-authenticate", 'Bearer realm="holdfast"');
    c.header("cache-control", "no-store");
    return c.json(problem.body(), status);
  });
  app.use(securityHeaders);
}
