/**
 * One port for several gateways: the host name of a request, and nothing else, chooses the gateway that
 * answers it.
 */
import { hostnameOf } from "../security/index.ts";
import type { App, GatewayListener, PortListener } from "./port-listener.ts";
import { Problem } from "./problem.ts";

export class HostListeners {
  readonly #listener: PortListener;
  readonly #apps = new Map<string, App>();

  constructor(listener: PortListener) {
    this.#listener = listener;
    listener.serve({ fetch: (request, env) => this.#appOf(request)?.fetch(request, env) ?? notHere() });
  }

  /** The part of the port that answers to this name. */
  of(host: string): GatewayListener {
    const name = host.toLowerCase();
    const listener = this.#listener;
    return {
      get url() {
        const address = new URL(listener.url);
        address.hostname = name;
        return address.origin;
      },
      serve: (app) => {
        this.#apps.set(name, app);
      },
      start: () => listener.start(),
      stop: async () => {
        this.#apps.delete(name);
      },
    };
  }

  #appOf(request: Request): App | undefined {
    return this.#apps.get(hostnameOf(request.headers.get("host") ?? undefined) ?? "");
  }
}

function notHere(): Response {
  const problem = new Problem({
    status: 421,
    code: "host_not_allowed",
    message: "No tenant of this gateway has that host name",
    hint: "Use a name of GATEWAY_TENANTS.",
  });
  return Response.json(problem.body(), { status: problem.init.status });
}
