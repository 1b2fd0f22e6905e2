/**
 * Checks that an identified caller may make this request: the scope of an API token, and the right to see
 * users' values. The role is checked in guards.ts.
 */
import type { TokenScope } from "../security/index.ts";
import { Problem } from "./problem.ts";
import type { Caller, RouteSpec } from "./route.ts";

/** Operations that every caller may use whatever the scope: they concern the caller alone. */
const always = new Set(["whoami", "login", "logout"]);

/** The parts of a request that scopes are about. */
export interface Request {
  operation: string;
  /** The orchestration, where the request names it. */
  orchestration?: string | undefined;
  /** The instance, where the request names one. */
  instanceId?: string | undefined;
}

/** `orchestrationOf`: the name of an instance's orchestration; undefined if there is no such instance. */
export async function requireScope(
  scope: TokenScope | undefined,
  { operation, orchestration, instanceId }: Request,
  orchestrationOf: (instanceId: string) => Promise<string | undefined>,
): Promise<void> {
  if (!scope || always.has(operation)) return;
  if (scope.operations && !scope.operations.includes(operation))
    throw outOfScope(`${operation} is not among the operations of this token`);
  if (!scope.orchestrations) return;
  const name = orchestration ?? (instanceId === undefined ? undefined : await orchestrationOf(instanceId));
  if (name === undefined && instanceId === undefined && orchestration === undefined) {
    if (operation === "listInstances") return; // narrowed by the route
    throw outOfScope(`${operation} concerns more than the orchestrations of this token`);
  }
  // The same answer for an instance that does not exist: a token must not find out which ids are taken.
  if (name === undefined || !scope.orchestrations.includes(name))
    throw outOfScope(`this token is for ${scope.orchestrations.join(", ")} only`);
}

export function requirePayloads(spec: Pick<RouteSpec, "id">, caller: Pick<Caller, "payloads">): void {
  if (!caller.payloads)
    throw new Problem({
      status: 403,
      code: "payloads_hidden",
      message: `${spec.id} shows users' values, which this caller may not see`,
      hint: "GATEWAY_PAYLOADS sets who may; +payloads behind a role grants it.",
    });
}

const outOfScope = (message: string): Problem =>
  new Problem({
    status: 403,
    code: "out_of_scope",
    message,
    hint: "Use another token, or have one issued with this in its scope.",
  });
