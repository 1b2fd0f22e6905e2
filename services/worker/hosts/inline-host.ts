import type { App } from "../../../shared/definitions/index.ts";
import type { Host } from "./host.ts";
import { HostClient } from "./host-client.ts";
import { HostServer } from "./host-server.ts";
import type { FromHost } from "./protocol.ts";

/** State in the worker's own thread: nothing is copied, and nothing stands between the user's code and the worker. */
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
    end: async () => client.end(new Error("the worker has ended")),
  };
}
