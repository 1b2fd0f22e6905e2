import { Client } from "./client.ts";
import type { ClientConnectOptions } from "./client-options.ts";

/**
 * Connects to the installation at `url`, or to the one that is found (see `Client.connect`).
 *
 * @example
 * ```ts
 * await using client = await connect({ url: "nats://127.0.0.1:4222" });
 * await client.signal("order-7", "paid");
 * ```
 */
export const connect = (options: ClientConnectOptions = {}): Promise<Client> => Client.connect(options);
