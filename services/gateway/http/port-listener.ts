/**
 * The gateway's port: open from the first moment to the last. The application that answers behind it may
 * change.
 */
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { Fault } from "../../../shared/errors/index.ts";
import { type Clock, once, type Service } from "../../../shared/runtime/index.ts";

export type App = Pick<Hono, "fetch">;

/** Takes a gateway's requests: from a port of its own, or those of a shared port that name its host. */
export interface GatewayListener extends Service {
  /** The address with the port that is actually bound. */
  readonly url: string;
  /** Lets this application answer from now on. */
  serve(app: App): void;
}

interface PortListenerOptions {
  host: string;
  /** 0 takes a free port. */
  port: number;
  clock: Clock;
}

/** Requests in progress get this long when the port closes. */
const lingerMs = 2_000;

export class PortListener implements GatewayListener {
  readonly #options: PortListenerOptions;
  readonly #server: Server;
  #app: App | undefined;

  constructor(options: PortListenerOptions) {
    this.#options = options;
    this.#server = createServer(
      getRequestListener(
        (request, env) => this.#app?.fetch(request, env) ?? new Response(null, { status: 503 }),
      ),
    );
    // Slow senders must not hold sockets; live events are not affected, since their request is complete.
    this.#server.requestTimeout = 30_000;
    this.#server.headersTimeout = 10_000;
  }

  get url(): string {
    const address = this.#server.address();
    const { host } = this.#options;
    const shown = host.includes(":") ? `[${host}]` : host === "0.0.0.0" ? "localhost" : host;
    return typeof address === "object" && address ? `http://${shown}:${address.port}` : "";
  }

  serve(app: App): void {
    this.#app = app;
  }

  start = once(
    () =>
      new Promise<void>((resolve, reject) => {
        const { host, port } = this.#options;
        this.#server.once("error", (cause) => reject(cannotListen(host, port, cause)));
        this.#server.listen(port, host, resolve);
      }),
  );

  stop = once(async () => {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const timer = this.#options.clock.after(lingerMs, () => this.#server.closeAllConnections());
    await closed;
    timer.cancel();
  });
}

function cannotListen(host: string, port: number, cause: Error): Fault {
  const taken = "code" in cause && cause.code === "EADDRINUSE";
  return new Fault("config", {
    code: taken ? "port_taken" : "cannot_listen",
    message: `the gateway cannot listen on ${host}:${port}: ${cause.message}`,
    ...(taken ? { hint: "Something else uses the port; set GATEWAY_PORT." } : {}),
    cause,
  });
}
