/** A NATS server in a container, started with testcontainers. */
import { readInfo } from "../../embedded-nats/index.ts";
import { HoldfastError, messageOf } from "../../errors/index.ts";

export const defaultImage = "nats:2.15-alpine";
const natsPort = 4222;

export async function startContainer(image: string): Promise<{ url: string; stop(): Promise<void> }> {
  const { GenericContainer, Wait, getContainerRuntimeClient } = await import("testcontainers").catch(
    (cause: unknown) => {
      throw new HoldfastError({
        code: "testcontainers_missing",
        message: `nats: "container" needs the package testcontainers, which is not installed: npm install --save-dev testcontainers. nats: "embedded" works without it`,
        cause,
      });
    },
  );
  await getContainerRuntimeClient().catch((cause: unknown) => {
    throw new HoldfastError({
      code: "container_engine_missing",
      message: `nats: "container" finds no container engine: ${reason(cause)}. "docker info" must answer; nats: "embedded" needs no engine`,
      cause,
    });
  });
  // Of the official images one starts its server through a shell script and one has no shell; both have it in the PATH.
  const started = await new GenericContainer(image)
    .withEntrypoint(["nats-server"])
    .withCommand(["-js"])
    .withExposedPorts(natsPort)
    .withWaitStrategy(Wait.forLogMessage(/Server is ready/))
    .start()
    .catch((cause: unknown) => {
      throw new HoldfastError({
        code: "container_failed",
        message: `nats: "container" could not start ${image}: ${reason(cause)}. The engine must have or pull that image, with nats-server in its PATH, and testcontainers/ryuk, unless TESTCONTAINERS_RYUK_DISABLED=true; nats: "embedded" needs no engine`,
        cause,
      });
    });
  const stop = async () => {
    await started.stop();
  };
  const host = started.getHost();
  const port = started.getMappedPort(natsPort);
  const answer = await readInfo({ host, port });
  if (answer.kind === "server") return { url: `nats://${host}:${port}`, stop };
  await stop();
  throw new HoldfastError({
    code: "container_unreachable",
    message: `nats: "container" started ${image}, but its server does not answer at ${host}:${port}, where the engine publishes its port. If the engine is on another machine, TESTCONTAINERS_HOST_OVERRIDE says under which address its ports are reached`,
  });
}

/** Some reasons come from the engine with a blank or a full stop at the end. */
const reason = (cause: unknown): string => messageOf(cause).trim().replace(/\.$/, "");
