/**
 * Two tenants on one server, an account each: neither can see, follow, start or stop anything of the other's,
 * nor use up its limits.
 */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { program } from "../../../services/cli/program.ts";
import {
  type Bus,
  connectBus,
  defaultTopology,
  ensureTopology,
  subjects,
  topology,
} from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/index.ts";
import { inboxPrefix, type RoleName } from "../../../shared/security/index.ts";
import { startNats, type TestNats } from "../../support/nats/nats-server.ts";

const names = subjects();
const options = { ...defaultTopology, historyShards: 1 };
const out = join(mkdtempSync(join(tmpdir(), "holdfast-tenants-")), "security");
const mostConnections = 16;
let said = "";
let nats: TestNats;
const open: Bus[] = [];

async function as(tenant: "a" | "b", role: RoleName): Promise<Bus> {
  const nkeyFile = join(out, tenant, role, "user.nk");
  const bus = await connectBus({ url: nats.url, nkeyFile, inboxPrefix: inboxPrefix(role), announce: silent });
  open.push(bus);
  return bus;
}

beforeAll(async () => {
  const stream = { write: (text: string) => (said += text), isTTY: false };
  const cli = { env: {}, exitCode: 0 as const, stdout: stream, stderr: stream };
  const streams = topology(names, options).length;
  const limits = ["--max-connections", String(mostConnections), "--max-streams", String(streams)];
  await program(cli).parseAsync(
    ["security", "init", "--out", out, "--tenant", "a", "--tenant", "b", ...limits],
    {
      from: "user",
    },
  );
  const dataDir = mkdtempSync(join(tmpdir(), "holdfast-nats-"));
  nats = await startNats({
    dataDir,
    extraConfig: `include ${relative(dataDir, join(out, "nats/accounts.conf"))}`,
  });
  for (const tenant of ["a", "b"] as const)
    await ensureTopology(await as(tenant, "provisioner"), names, options);
});

afterAll(async () => {
  for (const bus of open) await bus.close();
  await nats?.stop();
});

it("neither starts nor stops, sees nor hears what is the other's", async () => {
  const [a, b] = [await as("a", "gateway"), await as("b", "gateway")];
  const heard: string[] = [];
  for (const subject of [names.pulse, names.allNotices])
    await b.subscribe(subject === names.allNotices ? "notices.*.*" : subject, {}, (message) =>
      heard.push(message.subject),
    );
  await new Client({ bus: a, names }).start("order", {}, { id: "of-a" });
  a.send(names.pulse, new Uint8Array());
  await b.publish(names.verb("of-a", "terminate"), new TextEncoder().encode("{}"));
  await Promise.all([a.flush(), b.flush()]);
  const inbox = async (bus: Bus) =>
    ((await bus.read(names.inboxStream, names.inboxOf("of-a"))) ?? []).map(({ subject }) =>
      names.published(subject),
    );
  expect(await inbox(a)).toEqual(["orchestrations.of-a.start.order"]);
  expect(await inbox(b), "its own, and of no effect there").toEqual(["orchestrations.of-a.terminate"]);
  expect(heard).toEqual([]);
});

it("cannot reach the other by the subject it is answered to", async () => {
  const [a, b] = [await as("a", "worker"), await as("b", "gateway")];
  const before = (await b.streamInfo(names.inboxStream))?.messages;
  for (let i = 0; i < 3; i++)
    await a.request(names.verb("x", "activity"), new Uint8Array(), { timeoutMs: 1_000 });
  expect((await b.streamInfo(names.inboxStream))?.messages).toBe(before);
});

it("uses up its own room and not the other's", async () => {
  const refused = async (act: () => Promise<unknown>): Promise<boolean> =>
    act().then(
      () => false,
      () => true,
    );
  let left = mostConnections;
  while (left-- > 0 && !(await refused(() => as("a", "client"))));
  expect(left, "refused before there were so many more").toBeGreaterThan(0);
  await as("b", "client");
  const extra = (tenant: "a" | "b") =>
    as(tenant, "provisioner").then((bus) =>
      bus.ensureStream({ name: "EXTRA", subjects: ["extra"], retention: "limits" }),
    );
  expect(await refused(() => extra("b")), "no more streams than it may have").toBe(true);
});

it("prints no secret", () => {
  const { tenants } = JSON.parse(readFileSync(join(out, "security.json"), "utf8"));
  const seeds = JSON.stringify(tenants).match(/S[UAO][A-Z2-7]{56}/g) ?? [];
  expect(seeds.length).toBeGreaterThan(12);
  const shown =
    said +
    ["nats/accounts.conf", "nats/nats.conf", "compose.override.yaml"]
      .map((file) => readFileSync(join(out, file), "utf8"))
      .join();
  for (const seed of seeds) expect(shown).not.toContain(seed);
});
