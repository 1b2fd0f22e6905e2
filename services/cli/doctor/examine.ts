import { engineFindings } from "./engine-findings.ts";
import { look, type Patient } from "./look.ts";
import type { Finding } from "./seen.ts";
import { serverFindings } from "./server-findings.ts";

export async function examine(patient: Patient): Promise<Finding[]> {
  const { server, rest } = await look(patient);
  return [...serverFindings(server), ...(rest ? engineFindings(rest) : [])];
}
