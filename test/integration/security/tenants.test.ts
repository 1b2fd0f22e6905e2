/**
 * Two tenants on one server, an account each: neither can see, follow, start or stop anything of the other's,
 * nor use up its limits.
 */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { program } from "../../../services/cli/program.ts";
import { readConfig } from "../../../services/config.ts";
import { connectionSettings } from "../../../services/run-service.ts";
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
import type { RoleName } from "../../../shared/security/index.ts";
import { startNats, type TestNats } from "../../support/nats/nats-server.ts";

const names = subjects();
const options = { ...defaultTopology, historyShards: 1 };
const mostConnections = 16;

/** An account each for A and B, by `holdfast security init`, on a server of their own. */
class TwoTenants {
  readonly out = join(mkdtempSync(join(tmpdir(), "holdfast-tenants-")), "security");
  said = "";
  readonly #open: Bus[] = [];
  #nats: TestNats | undefined;

  async start(mode: string, limits: readonly (string | number)[]): Promise<void> {
    const stream = { write: (text: string) => (this.said += text), isTTY: false };
    const cli = { env: {}, exitCode: 0 as const, stdout: stream, stderr: stream };
    const init = ["security", "init", "--mode", mode, "--out", this.out, "--tenant", "a", "--tenant", "b"];
    await program(cli).parseAsync([...init, ...limits.map(String)], { from: "user" });
    const dataDir = mkdtempSync(join(tmpdir(), "holdfast-nats-"));
    const include = `include ${relative(dataDir, join(this.out, "nats/accounts.conf"))}`;
    this.#nats = await startNats({ dataDir, extraConfig: include });
  }

  async as(tenant: "a" | "b", role: RoleName): Promise<Bus> {
    const env = parseEnv(readFileSync(join(this.out, tenant, role, "env"), "utf8"));
    const { config } = readConfig({ ...env, NATS_URL: this.#nats?.url }, "cli");
    const bus = await connectBus({ ...connectionSettings(config, names, role), announce: silent });
    this.#open.push(bus);
    return bus;
  }

  async stop(): Promise<void> {
    for (const bus of this.#open) await bus.close();
    await this.#nats?.stop();
  }
}

describe.each(["nkey", "jwt"])("mode %s", (mode) => {
  const tenants = new TwoTenants();
  const as = (tenant: "a" | "b", role: RoleName) => tenants.as(tenant, role);

  beforeAll(async () => {
    const streams = topology(names, options).length;
    await tenants.start(mode, ["--max-connections", mostConnections, "--max-streams", streams]);
    for (const tenant of ["a", "b"] as const)
      await ensureTopology(await as(tenant, "provisioner"), names, options);
  });

  afterAll(() => tenants.stop());

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
    const { out, said } = tenants;
    const state = JSON.parse(readFileSync(join(out, "security.json"), "utf8"));
    const seeds = JSON.stringify(state.tenants).match(/S[UAO][A-Z2-7]{56}/g) ?? [];
    expect(seeds.length).toBeGreaterThan(12);
    const shown =
      said +
      ["nats/accounts.conf", "nats/nats.conf", "compose.override.yaml"]
        .map((file) => readFileSync(join(out, file), "utf8"))
        .join();
    for (const seed of seeds) expect(shown).not.toContain(seed);
  });
});

it.each(["nkey", "jwt"])("fills its own disk and not the other's, mode %s", async (mode) => {
  const [mostBytes, bytes] = [2_000_000, 100_000];
  const tenants = new TwoTenants();
  await tenants.start(mode, ["--max-store", mostBytes]);
  // The inbox alone: other streams reserve more.
  const inbox = { name: names.inboxStream, subjects: names.inboxSubjects, retention: "workqueue" } as const;
  for (const tenant of ["a", "b"] as const)
    await (await tenants.as(tenant, "provisioner")).ensureStream(inbox);
  const [a, b] = [await tenants.as("a", "gateway"), await tenants.as("b", "gateway")];
  const isStored = (bus: Bus, i: number) =>
    bus.publish(names.signal(`i${i}`, "go"), Buffer.alloc(bytes)).then(
      ({ kind }) => kind === "stored",
      () => false,
    );
  let stored = 0;
  while (stored * bytes < 2 * mostBytes && (await isStored(a, stored))) stored++;
  expect(stored).toBeGreaterThan(0);
  expect(stored, "refused before it was twice what it may have").toBeLessThan((2 * mostBytes) / bytes);
  expect(await isStored(b, 0)).toBe(true);
  await tenants.stop();
});
