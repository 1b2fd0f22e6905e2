/**
 * Sets of clients (`security add-client`) before a whole installation: each starts, signals and asks with its own key what
 * is its own, and nothing else; its keys change under it.
 */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { jetstream } from "@nats-io/jetstream";
import { credsAuthenticator, type NatsConnection, nkeyAuthenticator } from "@nats-io/nats-core";
import { describe, expect, it } from "vitest";
import { program } from "../../../services/cli/program.ts";
import { readConfig } from "../../../services/config.ts";
import { connectionSettings } from "../../../services/run-service.ts";
import { connectBus, subjects } from "../../../shared/bus/index.ts";
import { noCapabilities } from "../../../shared/capabilities/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import {
  mayPublish,
  maySubscribe,
  permissionsOf,
  type RoleName,
  roleNames,
} from "../../../shared/security/index.ts";
import { startNats } from "../../support/nats/nats-server.ts";
import { rawConnection } from "../../support/nats/raw-client.ts";
import type { SecuredNats } from "../../support/nats/secured-nats.ts";
import { Stack, until } from "../../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../../examples/cart/app.ts", import.meta.url));
const names = subjects();
const scope = { group: "shop", orchestrations: ["cart"], sessionTypes: ["till"] };

/** The folder that `security init` and `add-client` write, and the keys in it. */
class Keys {
  readonly folder = join(mkdtempSync(join(tmpdir(), "holdfast-sets-")), "security");
  readonly #mode: string;
  readonly #of: string;

  constructor(mode: string, of: string) {
    this.#mode = mode;
    this.#of = of;
  }

  async holdfast(...args: string[]): Promise<void> {
    const stream = { write: () => true, isTTY: false };
    const cli = { env: {}, exitCode: 0 as const, stdout: stream, stderr: stream };
    await program(cli).parseAsync(["security", ...args, "--out", this.folder], { from: "user" });
  }

  env(user: string): Record<string, string> {
    return parseEnv(readFileSync(join(this.folder, this.#of, user, "env"), "utf8")) as Record<string, string>;
  }

  /** As a set of clients connects that has this key now. */
  authenticator(user: string) {
    const file = this.#mode === "nkey" ? "user.nk" : "user.creds";
    const secret = readFileSync(join(this.folder, this.#of, user, file));
    return this.#mode === "nkey" ? nkeyAuthenticator(secret.subarray(0, 58)) : credsAuthenticator(secret);
  }
}

/** The subject with a token in the place of each wildcard. */
const concrete = (pattern: string) => pattern.replaceAll("*", "x").replace(/>$/, "x.y");

async function asked(nc: NatsConnection, subject: string, body: unknown = ""): Promise<unknown> {
  const payload = body === "" ? "" : JSON.stringify(body);
  return (await nc.request(subject, payload, { timeout: 20_000 })).json();
}

/** The whole life of a cart, by requests alone. */
async function buy(nc: NatsConnection): Promise<void> {
  const started = (await asked(nc, "start.cart")) as { instanceId: string };
  const id = started.instanceId;
  expect(await asked(nc, `update.${id}.add`, { name: "pen", price: 2 })).toMatchObject({ answer: 1 });
  expect(await asked(nc, `query.${id}.contents`)).toMatchObject({ answer: [{ name: "pen" }] });
  expect(await asked(nc, `status.${id}`)).toMatchObject({ status: "running" });
  await jetstream(nc).publish(`orchestrations.${id}.signal.checkout`, "");
  expect(await asked(nc, `result.${id}`)).toMatchObject({ status: "completed", output: 2 });
}

describe.each([
  ["nkey", ""],
  ["jwt", ""],
  ["jwt", "east"],
])("mode %s, tenant %o", (mode, tenant) => {
  it("does what is its own and nothing else, also after its keys have changed", async () => {
    const keys = new Keys(mode, tenant);
    const tenants = tenant === "" ? [] : ["--tenant", tenant, "--tenant", "west"];
    await keys.holdfast("init", "--mode", mode, ...tenants);
    const only = tenant === "" ? [] : ["--tenant", tenant];
    await keys.holdfast("add-client", "shop", "--orchestrations", "cart", "--session-types", "till", ...only);
    const dataDir = mkdtempSync(join(tmpdir(), "holdfast-nats-"));
    const include = `include ${relative(dataDir, join(keys.folder, "nats/accounts.conf"))}`;
    const nats = await startNats({ dataDir, extraConfig: include });
    const connection = (role: RoleName) =>
      connectionSettings(readConfig({ ...keys.env(role), NATS_URL: nats.url }, "cli").config, names, role);
    const secured: SecuredNats = {
      ...{ nats, env: (role) => keys.env(role), connection, tester: connection("gateway") },
      ...{ capabilities: noCapabilities, refused: () => [] },
    };
    await using _stack = await Stack.start({ app, secured, servers: [nats], workers: 0, watchers: 0 });
    const prefix = "_INBOX_client_shop";
    expect(keys.env("client-shop").NATS_INBOX_PREFIX).toBe(prefix);
    const connected = () =>
      rawConnection({
        servers: nats.url,
        inboxPrefix: prefix,
        authenticator: keys.authenticator("client-shop"),
        reconnect: false,
      });
    await using before = await connected();
    await buy(before.nc);

    // Whatever any role may do, and this set may not.
    const mine = permissionsOf("client", names, scope);
    const all = roleNames.map((role) => permissionsOf(role, names));
    const others = [
      ...["start.order", "orchestrations.i1.start.order", "orchestrations.i1.cancel"],
      ...["call.till.k1.pay", "call.safe.k1.open", "session.till.k1"],
    ];
    const published = [...new Set([...all.flatMap(({ publish }) => publish.allow.map(concrete)), ...others])];
    for (const subject of published) before.nc.publish(subject, "");
    await before.nc.flush();
    await expect
      .poll(() => published.filter((one) => before.refused.has(one) === mayPublish(mine, one)))
      .toEqual([]);
    before.refused.clear();
    const heard = [
      ...new Set([...all.flatMap(({ subscribe }) => subscribe.allow.map(concrete)), "_INBOX_client.x", ">"]),
    ];
    for (const subject of heard) before.nc.subscribe(subject, { callback: () => undefined });
    await before.nc.flush();
    await expect
      .poll(() => heard.filter((one) => before.refused.has(one) === maySubscribe(mine, one)))
      .toEqual([]);

    // New keys beside the old ones, then alone.
    const old = keys.authenticator("client-shop");
    const reload = () => process.kill(nats.pid, "SIGHUP");
    const fresh = () =>
      until("the server knows the new key", () => connected().catch(() => undefined), 20_000);
    await keys.holdfast("rotate", "--role", "client");
    reload();
    await using during = await fresh();
    await buy(during.nc);
    const ended = before.nc.closed();
    await keys.holdfast("rotate", "--role", "client", "--finish");
    reload();
    await ended; // whoever still used the old key
    await expect(
      rawConnection({ servers: nats.url, inboxPrefix: prefix, authenticator: old }),
    ).rejects.toThrow();
    await using after = await fresh();
    await buy(after.nc);

    if (tenant === "") return;
    expect(() => keys.env("../west/client-shop"), "the other tenant has no such set").toThrow();
    const west = connectionSettings(
      readConfig({ ...keys.env("../west/gateway"), NATS_URL: nats.url }, "cli").config,
      names,
      "west",
    );
    const bus = await connectBus({ ...west, announce: silent });
    expect(await bus.streamInfo(names.inboxStream), "nor anything of what the set did").toBeUndefined();
    await bus.close();
    await expect(keys.holdfast("add-client", "desk", "--tenant", "north")).rejects.toThrow("no tenant north");
  });
});
