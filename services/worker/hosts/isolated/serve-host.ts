/**
 * The main loop of a host in a thread or process of its own: loads the application, reports ready, answers
 * until it is ended.
 */

import { loadApp } from "../../../../shared/app-loading/load-app.ts";
import { toFailure } from "../../../../shared/errors/index.ts";
import type { HostSetup } from "./carrier.ts";
import { HostServer } from "./host-server.ts";
import type { FromHost, Post, ToHost } from "./protocol.ts";

export interface HostEnd {
  post: Post<FromHost>;
  onMessage(listener: (message: ToHost) => void): void;
}

export async function serveHost(setup: HostSetup, end: HostEnd): Promise<void> {
  try {
    const { appPath, threads, checksThreadSafety } = setup;
    const options = { copies: true, threads, checksThreadSafety };
    const server = new HostServer(await loadApp(appPath), end.post, options);
    end.onMessage((message) => server.receive(message));
    end.post({ kind: "ready" });
  } catch (error) {
    end.post({ kind: "unable", error: toFailure(error) });
  }
}
