/** Where a test's server comes from: an embedded one, one in a container, or one that runs already. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedNats } from "../../embedded-nats/index.ts";
import { defaultImage, startContainer } from "./container.ts";

/** A server that the tests of this process share while any of them needs it. */
export interface UsedServer {
  readonly url: string;
  /** True if the server, with everything it stores, ends with its last user. */
  readonly own: boolean;
  release(): Promise<void>;
}

interface Running {
  url: string;
  stop(): Promise<void>;
}

const inContainer = /^container(?::(?<image>.+))?$/;
const running = new Map<string, { users: number; server: Promise<Running> }>();

export async function useServer(nats: string): Promise<UsedServer> {
  if (nats === "embedded") return shared("embedded", embedded);
  const asked = inContainer.exec(nats);
  if (asked) return shared(nats, () => startContainer(asked.groups?.image ?? defaultImage));
  return { url: nats, own: false, release: async () => undefined };
}

/** Different for every environment: tests that share a server do not see each other's data. */
export const ownPrefix = (): string => `test-${randomBytes(6).toString("hex")}`;

async function shared(kind: string, start: () => Promise<Running>): Promise<UsedServer> {
  const entry = running.get(kind) ?? { users: 0, server: start() };
  running.set(kind, entry);
  entry.users++;
  const release = async () => {
    if (--entry.users > 0) return;
    running.delete(kind);
    await entry.server.then(
      (server) => server.stop(),
      () => undefined, // The server never started.
    );
  };
  try {
    const { url } = await entry.server;
    return { url, own: true, release };
  } catch (error) {
    await release();
    throw error;
  }
}

async function embedded(): Promise<Running> {
  const dataDir = await mkdtemp(join(tmpdir(), "holdfast-test-"));
  const remove = () => rm(dataDir, { recursive: true, force: true });
  try {
    const server = await startEmbeddedNats({ dataDir });
    return {
      url: server.url,
      stop: async () => {
        await server.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
