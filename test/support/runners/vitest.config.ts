import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["test/support/runners/*.vitest.ts"], testTimeout: 60_000 } });
