import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));

export default {
  rootDir: root,
  roots: [fileURLToPath(new URL(".", import.meta.url))],
  testMatch: ["**/*.jest.mjs"],
  transform: {},
  cache: false,
  testTimeout: 60_000,
  // As if the package were installed; jest does not know a package by its own name.
  moduleNameMapper: {
    "^holdfast$": "<rootDir>/dist/shared/sdk/index.js",
    "^holdfast/testing$": "<rootDir>/dist/shared/testing/index.js",
  },
};
