import type { App } from "../../../shared/definitions/index.ts";
import type { Host } from "./host.ts";
import { HostClient } from "./isolated/host-client.ts";
import { HostServer } from "./isolated/host-server.ts";
import type { FromHost } from "./isolated/protocol.ts";

/**
 * A host in the worker's own thread: values are not copied, and user code is not isolated from the worker.
 */
export function inlineHost(app: App, options: { threads: number; checksThreadSafety: boolean }): Host {
  const client: HostClient = new HostClient((message) => server.receive(message));
  const post = (message: FromHost) => {
    switch (message.kind) {
      case "ready":
      case "unable":
      case "pong":
      case "host-log":
      case "refused":
        return;
      default:
        client.receive(message);
    }
  };
  const server: HostServer = new HostServer(app, post, options);
  return {
    id: "inline",
    isolation: "inline",
    client,
    onLost: () => () => undefined,
    rssBytes: () => undefined,
    info: () => undefined,
    end: async () => client.end(new Error("the worker has ended")),
  };
}
