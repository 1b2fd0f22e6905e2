/**
 * Reports at once a start under a wrong name or without any orchestrator, which otherwise would show late or
 * never.
 */
import { ServiceInfo } from "../../../schemas/index.ts";
import { Bucket, TypedBucket } from "../../../shared/bus/index.ts";
import { HoldfastError } from "../../../shared/errors/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import type { CliConnection } from "../connection/client-command.ts";

export type Served =
  | { kind: "served" }
  /** Orchestrators are alive, but none serves this name. */
  | { kind: "unknown"; names: string[] }
  | { kind: "no_orchestrator" };

export async function findServing(
  { bus, names }: Pick<CliConnection, "bus" | "names">,
  name: string,
): Promise<Served> {
  const services = new TypedBucket<ServiceInfo>(
    new Bucket(bus, names.bucket("services")),
    ServiceInfo,
    silent,
  );
  const known = new Set<string>();
  let orchestrators = 0;
  for await (const { value } of services.entries()) {
    if (value.service !== "orchestrator") continue;
    orchestrators++;
    // An orchestrator that does not list its orchestrations may serve this one.
    if (!value.orchestrations) return { kind: "served" };
    for (const served of Object.keys(value.orchestrations)) known.add(served);
  }
  if (orchestrators === 0) return { kind: "no_orchestrator" };
  return known.has(name) ? { kind: "served" } : { kind: "unknown", names: [...known].sort() };
}

export const unknownOrchestration = (name: string, names: readonly string[]): HoldfastError =>
  new HoldfastError({
    code: "unknown_orchestration",
    message: `no orchestrator serves an orchestration named ${JSON.stringify(name)}; nothing was started. There ${names.length === 1 ? "is" : "are"}: ${names.join(", ") || "none"}`,
  });
