/** Turns a route into its handler: check, parse, record, act, answer. */
import type { Context, Handler } from "hono";
import type { z } from "zod";
import { parseJson } from "../../../shared/bus/index.ts";
import type { Audit, Audited } from "../audit.ts";
import { hiderOf } from "../security/index.ts";
import { requirePayloads, requireScope } from "./admission.ts";
import { type Origins, requireOwnPage, requireRole, requireWritable } from "./guards.ts";
import { busAway, Problem } from "./problem.ts";
import { type Caller, Reply, type RouteSpec } from "./route.ts";
import { auditedWords, withoutUsersWords, wordsOf } from "./users-words.ts";

interface RouteServer {
  caller(c: Context): Caller | undefined;
  origins: Origins;
  /** The name of an instance's orchestration; undefined if there is no such instance. */
  orchestrationOf(instanceId: string): Promise<string | undefined>;
  readOnly: boolean;
  busConnected(): boolean;
  audit: Audit;
}

export function serveRoute(spec: RouteSpec, server: RouteServer): Handler {
  const hide = hiderOf(spec.answer);
  return async (c) => {
    if (spec.method === "post") requireOwnPage(c);
    const caller =
      requireRole(spec, server.caller(c)) ??
      anonymous(server.origins.addressOf(c), server.origins.isHttps(c));
    requireWritable(spec, server.readOnly);
    const params = parse(spec.params, c.req.param(), "path");
    const query = parse(spec.query, c.req.query(), "query");
    const body = spec.body ? parse(spec.body, await jsonBody(c), "body") : undefined;
    if (!spec.offline && !server.busConnected()) throw busAway();
    await requireScope(caller.scope, requestOf(spec, params), server.orchestrationOf);
    if (spec.valueOnly) requirePayloads(spec, caller);
    if (caller.payloads) await recordRead(spec, server.audit, { params, query, body, caller });
    const audited = spec.audit && { action: spec.id, ...spec.audit({ params, query, body }) };
    if (audited) await server.audit.asked(caller, audited);
    const input = { params, query, body, caller, signal: c.req.raw.signal };
    const answer = await act(spec, server.audit, audited, input);
    c.header("cache-control", "no-store");
    if (!(answer instanceof Reply)) {
      const shown = hide && !caller.payloads ? hide(answer) : answer;
      return c.json(shown as object, spec.status ?? 200);
    }
    for (const [name, value] of Object.entries(answer.headers)) c.header(name, value);
    if (answer.body instanceof Uint8Array) return c.body(new Uint8Array(answer.body).buffer);
    return c.json(answer.body as object, spec.status ?? 200);
  };
}

async function recordRead(
  { id: action, reads, lists }: RouteSpec,
  audit: Audit,
  input: Omit<Parameters<RouteSpec["act"]>[0], "signal">,
): Promise<void> {
  if (reads) await audit.read(input.caller, { action, target: reads(input) });
  if (lists !== undefined) await audit.read(input.caller, { action, target: lists }, "list");
}

/** The caller of a public route without a token: has the rights that every caller has. */
const anonymous = (from: string, https: boolean): Caller => ({
  ...{ name: "anonymous", role: "viewer", payloads: false },
  ...{ from, https },
});

/** The instance or orchestration that a request names in its path, for scopes. */
function requestOf({ id, path }: RouteSpec, params: unknown) {
  const { id: instanceId, name } = params as { id?: string; name?: string };
  return {
    operation: id,
    ...(path.startsWith("/api/instances/:id") && { instanceId }),
    ...(path.startsWith("/api/orchestrations/:name") && { orchestration: name }),
  };
}

async function act(
  spec: RouteSpec,
  audit: Audit,
  audited: Audited | undefined,
  input: Parameters<RouteSpec["act"]>[0],
): Promise<unknown> {
  const { caller } = input;
  try {
    return await spec.act(input);
  } catch (error) {
    if (audited) await audit.failed(caller, audited, spec.runsCode ? auditedWords(error) : wordsOf(error));
    throw spec.runsCode && !caller.payloads ? withoutUsersWords(error) : error;
  }
}

function parse(schema: z.ZodType | undefined, value: unknown, where: string): unknown {
  if (!schema) return {};
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, 5).map((issue) => ({
    path: issue.path.join("."),
    message: issue.message,
  }));
  throw new Problem({
    status: 400,
    code: "invalid_input",
    message: issues
      .map((issue) => `${where}${issue.path ? ` ${issue.path}` : ""}: ${issue.message}`)
      .join("; "),
    hint: "See /api/openapi.json for what this route takes.",
    details: { issues },
  });
}

/** JSON only: a form on another site cannot send it without a preflight request. */
async function jsonBody(c: Context): Promise<unknown> {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/json\b/i.test(type)) {
    throw new Problem({
      status: 415,
      code: "not_json",
      message: "The body must be JSON",
      hint: "Send Content-Type: application/json; {} if there is nothing to send.",
    });
  }
  const parsed = parseJson(new Uint8Array(await c.req.arrayBuffer()));
  if (parsed.kind === "ok") return parsed.value;
  throw new Problem({ status: 400, code: "not_json", message: `The body is ${parsed.message}` });
}
