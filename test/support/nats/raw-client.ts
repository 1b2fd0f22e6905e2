/** A plain NATS connection with the key of one role, and what the server refused it: for attacks by hand. */
import { type ConnectionOptions, errors, type NatsConnection, nkeyAuthenticator } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import type { RoleName } from "../../../shared/security/index.ts";
import type { SecuredNats } from "./secured-nats.ts";

export interface RawClient extends AsyncDisposable {
  nc: NatsConnection;
  /** Subjects that it may not publish to, or subscribe to. The client tells of them a moment after they have come. */
  refused: Set<string>;
}

export function rawClient(secured: SecuredNats, role: RoleName): Promise<RawClient> {
  const { url, nkeySeed = "", inboxPrefix = "" } = secured.connection(role);
  const authenticator = nkeyAuthenticator(new TextEncoder().encode(nkeySeed));
  return rawConnection({ servers: url, authenticator, inboxPrefix });
}

export async function rawConnection(options: ConnectionOptions): Promise<RawClient> {
  const nc = await connect(options);
  const refused = new Set<string>();
  void (async () => {
    for await (const status of nc.status())
      if (status.type === "error" && status.error instanceof errors.PermissionViolationError)
        refused.add(status.error.subject);
  })();
  return { nc, refused, [Symbol.asyncDispose]: () => nc.close() };
}
