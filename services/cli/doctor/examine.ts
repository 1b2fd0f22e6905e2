import { engineFindings } from "./engine-findings.ts";
import type { Finding } from "./observations.ts";
import { type ObservedInstallation, observe } from "./observe.ts";
import { serverFindings } from "./server-findings.ts";

export async function examine(installation: ObservedInstallation): Promise<Finding[]> {
  const { server, rest } = await observe(installation);
  return [...serverFindings(server), ...(rest ? engineFindings(rest) : [])];
}
