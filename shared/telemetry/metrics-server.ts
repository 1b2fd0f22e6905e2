/** Serves `/metrics`, `/livez` and `/version` of one process, for services other than the gateway. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Fault } from "../errors/index.ts";
import type { Service } from "../runtime/index.ts";

interface MetricsServerOptions {
  host: string;
  port: number;
  version: string;
  text(): Promise<string>;
  ready(): boolean;
  /** Further fields of `/version`. */
  more?(): Record<string, unknown>;
}

export class MetricsServer implements Service {
  readonly #options: MetricsServerOptions;
  #server: Server | undefined;

  constructor(options: MetricsServerOptions) {
    this.#options = options;
  }

  get port(): number {
    return (this.#server?.address() as AddressInfo | null)?.port ?? 0;
  }

  async start(): Promise<void> {
    const { host, port } = this.#options;
    const server = createServer((request, response) => {
      void this.#answer(request.url ?? "/").then(({ status, type, body }) => {
        response.writeHead(status, { "content-type": type, "x-content-type-options": "nosniff" }).end(body);
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", (cause) =>
        reject(
          new Fault("config", {
            code: "cannot_listen",
            message: `METRICS_PORT=${port}: ${cause.message}`,
            cause,
          }),
        ),
      );
      server.listen(port, host, resolve);
    });
    server.unref();
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  async #answer(url: string): Promise<{ status: number; type: string; body: string }> {
    const json = (status: number, value: unknown) => ({
      status,
      type: "application/json",
      body: JSON.stringify(value),
    });
    switch (url.split("?")[0]) {
      case "/metrics":
        return {
          status: 200,
          type: "text/plain; version=0.0.4; charset=utf-8",
          body: await this.#options.text(),
        };
      case "/livez":
        return json(200, { ok: true });
      case "/readyz":
        return this.#options.ready() ? json(200, { ok: true }) : json(503, { ok: false });
      case "/version":
        return json(200, { name: "holdfast", version: this.#options.version, ...this.#options.more?.() });
      default:
        return json(404, { ok: false });
    }
  }
}
