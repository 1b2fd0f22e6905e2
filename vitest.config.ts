import { defineConfig } from "vitest/config";
import { accessGuards } from "./test/guards/guards.ts";
import { withoutGuard } from "./test/simulation/mutations.ts";
import { LongestFirst } from "./test/support/vitest/longest-first.ts";
import { RetriedReporter } from "./test/support/vitest/retried-reporter.ts";

/** What runs in its own memory alone. */
const inMemory = ["test/architecture/**/*.test.ts", "test/simulation/**/*.test.ts", "test/unit/**/*.test.ts"];

export default defineConfig({
  plugins: [withoutGuard(process.env.HOLDFAST_WITHOUT, accessGuards)],
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Each poll waits for a fact; of its own accord vitest gives up after a second.
    expect: { poll: { timeout: 30_000 } },
    // For two cores: with two files at once, process tests left 38 % of the CPU time unused, waiting for TTLs and timers.
    maxWorkers: 4,
    // Files of a kind share a process, and with it the loaded modules: most of them load the whole engine.
    isolate: false,
    globalSetup: ["test/support/vitest/global-setup.ts"],
    // Process tests meet a machine that does other things too; what fails three times is broken.
    retry: process.env.CI ? 2 : 0,
    reporters: ["default", new RetriedReporter()],
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { name: "in memory", include: inMemory } },
      {
        extends: true,
        test: {
          name: "real",
          include: ["test/**/*.test.ts", "examples/**/*.test.ts"],
          exclude: inMemory,
          setupFiles: ["test/support/vitest/print-service-logs.ts"],
        },
      },
    ],
  },
});
