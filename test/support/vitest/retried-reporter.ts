/** Names, at the end of a run, the tests that were tried again, and what went wrong in each try: each of them is a lead. */
import type { Reporter, TestCase, TestModule } from "vitest/node";

const linesOfAnError = 12;

export class RetriedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const retried = modules.flatMap((module) => [...module.children.allTests()].flatMap(tries));
    if (retried.length > 0) console.log(`\nneeded a retry:\n${retried.join("\n")}`);
  }
}

function tries(test: TestCase): string[] {
  const { retryCount = 0, flaky = false } = test.diagnostic() ?? {};
  if (retryCount === 0) return [];
  const errors = (test.result().errors ?? []).flatMap(({ message }) =>
    message.split("\n").slice(0, linesOfAnError),
  );
  return [
    `  ${test.module.relativeModuleId}: ${test.fullName} (${retryCount} more, ${flaky ? "passed" : "failed"})`,
    ...errors.map((line) => `    ${line}`),
  ];
}
