/** What tests with roles count as a fault: all that the server refuses, but answers that an earlier connection owed. */
import type { NatsConnection } from "@nats-io/nats-core";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { RoleName } from "../../../shared/security/index.ts";
import { rawClient } from "../../support/nats/raw-client.ts";
import { type SecuredNats, startSecuredNats } from "../../support/nats/secured-nats.ts";

let secured: SecuredNats;
let inboxes = 0;
const open: NatsConnection[] = [];

beforeEach(async () => {
  secured = await startSecuredNats();
});
afterEach(async () => {
  for (const nc of open.splice(0)) await nc.close();
  await secured?.nats.stop();
});

async function as(role: RoleName): Promise<NatsConnection> {
  const { nc } = await rawClient(secured, role);
  open.push(nc);
  return nc;
}

/** What is counted of a gateway's answer to a question that its connection was never asked. */
async function unasked(): Promise<string[]> {
  const subject = `_INBOX_client.${++inboxes}`;
  const gateway = await as("gateway");
  gateway.publish(subject, "");
  await gateway.flush();
  return secured.refused().filter((one) => one.endsWith(subject));
}

const changes: Record<string, () => Promise<void>> = {
  "of a server that was never started anew": async () => undefined,
  "of a server that was started anew": () => secured.nats.restart(),
  "of a server that has read its configuration again": async () => {
    process.kill(secured.nats.pid, "SIGHUP");
    await expect.poll(unasked).toEqual([]);
  },
};

it.each(Object.entries(changes))("an answer too many is a fault %s", async (_which, change) => {
  await change();
  const [client, gateway] = [await as("client"), await as("gateway")];
  const reply = `_INBOX_client.${++inboxes}`;
  const answered = new Promise<void>((resolve) => {
    gateway.subscribe("status.*", {
      callback: (_error, message) => {
        // A user's right is one answer to a question: without that right, the first one would be refused so.
        message.respond("");
        message.respond("");
        resolve();
      },
    });
  });
  await gateway.flush();
  client.publish("status.i1", "", { reply });
  await client.flush();
  await answered;
  await gateway.flush();
  expect(secured.refused()).toContain(`gateway: Publish ${reply}`);
});

it("an answer to a question that went to an earlier connection is no fault; any other subject is one", async () => {
  expect(await unasked(), "before any change: from nowhere").toHaveLength(1);
  await secured.nats.restart();
  expect(await unasked()).toEqual([]);
  const gateway = await as("gateway");
  gateway.publish("history.0.i1", "");
  await gateway.flush();
  expect(secured.refused()).toContain("gateway: Publish history.0.i1");
});
