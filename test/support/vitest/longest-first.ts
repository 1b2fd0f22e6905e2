/**
 * Files that start processes and wait for them come first: the last one to begin should be a short one. The two projects
 * stay apart, because a test process serves one project: at each change between them it would start and load anew.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

const slowFirst = ["fault", "e2e", "integration", "conformance", "simulation"];
/** By the end of the path. What computes much stands beside what waits much: several of them run at once. */
const longest = [
  "/race",
  "/hanging",
  "/drain",
  "/nemesis",
  "/lent-member-lost",
  "/documents",
  "/pool-member-lost",
  "/dashboard-every-page",
  "/schedules-killed",
  "/examples",
  "/nats-outage-sessions",
  "/demo",
  "/session-loss",
  "/new-user",
  "/dev-watch",
  "/runaway",
  "/fault-points",
  "/orchestrator-killed",
  "/bad-handlers",
  "/keyed-sessions",
  "/cli",
];

/** Compared from left to right. */
function rank({ moduleId, project }: TestSpecification): number[] {
  const [, folder = ""] = /\/test\/([^/]+)\//.exec(moduleId) ?? [];
  const first = longest.findIndex((end) => moduleId.endsWith(`${end}.test.ts`));
  const place = slowFirst.indexOf(folder);
  return [
    project.name === "real" ? 0 : 1,
    first < 0 ? longest.length : first,
    place < 0 ? slowFirst.length : place,
  ];
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bySize = await super.sort(files);
    const ranked = bySize.map((file) => ({ file, rank: rank(file) }));
    ranked.sort((a, b) => {
      const differs = a.rank.findIndex((value, i) => value !== b.rank[i]);
      return (a.rank[differs] ?? 0) - (b.rank[differs] ?? 0);
    });
    return ranked.map(({ file }) => file);
  }
}
