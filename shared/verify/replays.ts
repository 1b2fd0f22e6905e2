/**
 * I5: the application's code, run over the stored history, decides the same. Holds that one history in
 * memory.
 */
import type { Commit, Payload } from "../../schemas/index.ts";
import { Payloads } from "../bus/index.ts";
import type { App } from "../definitions/index.ts";
import type { FoundHistory } from "../history/index.ts";
import { replayHistory } from "../sdk/index.ts";
import type { Installation } from "./installation.ts";
import type { Findings } from "./report.ts";

export async function checkReplay(
  installation: Installation,
  app: App,
  instanceId: string,
  found: FoundHistory,
  findings: Findings,
): Promise<void> {
  const commits: Commit[] = [];
  for await (const { page, anew } of installation.histories.read(instanceId, found)) {
    if (anew) commits.length = 0;
    commits.push(...page.map(({ commit }) => commit));
  }
  const started = commits.flatMap(({ events }) => events).findLast(({ kind }) => kind === "instance.started");
  if (started?.kind !== "instance.started") return;
  // Keepers of pools, schedules and limits are orchestrations of the engine.
  if (started.name.startsWith("holdfast-")) return;
  if (!app.orchestrations.has(started.name))
    return findings.note(`the application has no orchestration ${started.name}: not replayed`);
  const payloads = new Payloads(installation.bus.blobs);
  const fetch = (payload: Payload) => payloads.unwrap(payload);
  const outcome = await replayHistory(
    app,
    { format: "holdfast-history", v: 1, instanceId, commits },
    { fetch },
  );
  findings.count("replayed");
  if (outcome.kind === "disagrees")
    findings.violation(
      "I5",
      instanceId,
      `execution ${outcome.execution}${outcome.event ? `, event ${outcome.event}` : ""}: ${outcome.message}`,
    );
}
