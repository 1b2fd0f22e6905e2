/** Files that start processes and wait for them come first: the last one to begin should be a short one. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

const slowFirst = ["fault", "e2e", "integration", "conformance", "simulation"];
const longest = [
  "nemesis",
  "race",
  "every-page",
  "examples",
  "demo",
  "new-user",
  "session-loss",
  "bad-handlers",
];

function rank(file: string): number {
  const [, folder = "", rest = ""] = /\/test\/([^/]+)\/(.*)$/.exec(file) ?? [];
  const first = longest.findIndex((name) => rest.endsWith(`${name}.test.ts`));
  if (first >= 0) return first - longest.length;
  const place = slowFirst.indexOf(folder);
  return place < 0 ? slowFirst.length : place;
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bySize = await super.sort(files);
    return bySize.sort((a, b) => rank(a.moduleId) - rank(b.moduleId));
  }
}
