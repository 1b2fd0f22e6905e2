import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Two cores: process tests start several services each, more files at once only make them wait for each other.
    maxWorkers: 2,
    globalSetup: ["test/support/global-setup.ts"],
    // Process tests meet a machine that does other things too; what fails three times is broken.
    retry: process.env.CI ? 2 : 0,
    reporters: ["default"],
  },
});
