import type { CodeGroup } from "./code-group.ts";

export const testing: CodeGroup = {
  title: "The testing kit",
  about: "in a test that runs on holdfast/testing",
  codes: {
    testcontainers_missing: {
      cause: 'The test asks for `nats: "container"`, and the package testcontainers is not installed.',
      remedy: 'npm install --save-dev testcontainers, or use `nats: "embedded"`.',
    },
    container_engine_missing: {
      cause: 'The test asks for `nats: "container"`, and no container engine answers.',
      remedy: 'Start one, so that `docker info` answers (`DOCKER_HOST`), or use `nats: "embedded"`.',
    },
    container_failed: {
      cause:
        'The test asks for `nats: "container"`, and the container did not start; the message has the reason.',
      remedy:
        "The engine must have the image or be able to pull it, `nats-server` must be in its PATH, and testcontainers' own image must be there too, unless `TESTCONTAINERS_RYUK_DISABLED=true`.",
    },
    container_unreachable: {
      cause: "The server in the container runs, but its published port does not answer.",
      remedy:
        "`TESTCONTAINERS_HOST_OVERRIDE` names the address of an engine on another machine; check that no firewall is in between.",
    },
    no_outage: {
      cause:
        "`env.outage` was called on a server that is reached by TLS, whose connections the kit cannot cut.",
      remedy: "Run the test in memory, or on a server without TLS.",
    },
  },
};
