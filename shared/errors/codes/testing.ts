import type { CodeGroup } from "./code-group.ts";

export const testing: CodeGroup = {
  title: "The testing kit",
  about: "in a test that runs on holdfast/testing",
  codes: {
    testcontainers_missing: {
      cause: 'The test asks for `nats: "container"`, and the package testcontainers is not installed.',
      remedy: 'npm install --save-dev testcontainers, or use `nats: "embedded"`.',
    },
    container_failed: {
      cause: 'The test asks for `nats: "container"`, and the container did not start.',
      remedy:
        'See that a container engine runs (`docker info`) and can have the image; `nats: "embedded"` needs none.',
    },
    no_outage: {
      cause:
        "`env.outage` was called on a server that is reached by TLS, whose connections the kit cannot cut.",
      remedy: "Run the test in memory, or on a server without TLS.",
    },
  },
};
