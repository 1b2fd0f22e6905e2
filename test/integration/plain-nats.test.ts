/** The whole life of instances with nothing but a NATS connection: subjects, JSON and headers, no SDK. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { main } from "../../services/cli/main.ts";
import { type Dev, startDev, until } from "../support/processes/cli.ts";

describe("plain NATS", () => {
  let dir: string;
  let dev: Dev;
  let nc: NatsConnection;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "holdfast-plain-"));
    dev = await startDev(dir);
    nc = await connect({ servers: dev.ready.natsUrl });
  });
  afterAll(async () => {
    await nc?.close();
    dev?.signal("SIGTERM");
    await dev?.ended();
    await rm(dir, { recursive: true, force: true });
  });

  const ask = async (subject: string, body = "", extra: Record<string, string> = {}) => {
    const hdrs = headers();
    for (const [name, value] of Object.entries(extra)) hdrs.set(name, value);
    const reply = await nc.request(subject, body, { timeout: 40_000, headers: hdrs });
    return reply.json<Record<string, unknown>>();
  };
  /** A publish to a stream's subject is answered with its acknowledgement: durably accepted. */
  const accepted = async (subject: string, body = "", extra: Record<string, string> = {}) =>
    expect(await ask(subject, body, extra)).toMatchObject({ stream: "INBOX", seq: expect.any(Number) });

  it("publishes a start, a signal, and asks for the result", async () => {
    await accepted("orchestrations.p1.start.wait-for-signal");
    await until(async () => (await ask("status.p1")).status === "running", "it runs");
    await accepted("orchestrations.p1.signal.go", '{"deep":[1,"ü"]}');
    expect(await ask("result.p1")).toMatchObject({
      ok: true,
      instanceId: "p1",
      status: "completed",
      output: { deep: [1, "ü"] },
    });
  });

  it("asks the code of an instance, running and over", async () => {
    await accepted("orchestrations.p-cart.start.cart");
    expect(await ask("query.p-cart.contents")).toEqual({ ok: true, answer: [] });
    const once = { "Holdfast-Update-Id": "add-1" };
    for (let i = 0; i < 2; i++)
      expect(await ask("update.p-cart.add", '{"name":"pen","price":2}', once)).toEqual({
        ok: true,
        status: "completed",
        answer: 1,
      });
    const refused = { ok: false, error: { code: "update_refused", message: "pen is in the cart already" } };
    expect(await ask("update.p-cart.add", '{"name":"pen","price":2}')).toMatchObject(refused);
    const answers = nc.subscribe("answers.p-cart.add-2", { max: 2 });
    await accepted("orchestrations.p-cart.update.add", '{"name":"ink","price":1}', {
      "Holdfast-Update-Id": "add-2",
    });
    const statuses = [];
    for await (const message of answers) statuses.push(message.json<{ status: string }>().status);
    expect(statuses).toEqual(["accepted", "completed"]);
    expect(await ask("update.p-cart.nope")).toMatchObject({ error: { code: "unknown_update" } });
    expect(await ask("update.p-ghost.add", '{"name":"x","price":1}')).toMatchObject({
      error: { code: "instance_not_found" },
    });
    expect(await ask("query.p-cart.contents", '{"above":5}')).toEqual({ ok: true, answer: [] });
    await accepted("orchestrations.p-cart.signal.checkout");
    expect(await ask("result.p-cart")).toMatchObject({ output: 3 });
    expect(await ask("query.p-cart.contents", '{"above":1}')).toEqual({
      ok: true,
      answer: [{ name: "pen", price: 2 }],
    });
    expect(await ask("update.p-cart.add", '{"name":"x","price":1}')).toMatchObject({
      error: { code: "instance_ended" },
    });
    expect(await ask("query.p-cart.nope")).toMatchObject({
      ok: false,
      error: { code: "unknown_query", message: expect.stringMatching(/there is: contents$/) },
    });
    expect(await ask("query.p-cart.contents", "{nope")).toMatchObject({ error: { code: "invalid_json" } });
    expect(await ask("query.p-ghost.contents")).toMatchObject({ error: { code: "instance_not_found" } });
  });

  it("gets an id made by request, and a result that is waited for", async () => {
    const started = await ask("start.hello", '{"name":"NATS"}');
    expect(started).toEqual({ ok: true, instanceId: expect.any(String) });
    expect(await ask(`result.${started.instanceId}`)).toMatchObject({ output: "Hello, NATS!" });
  });

  it("gets the status so far where it does not want to wait longer", async () => {
    await ask("start.sleepy", '{"ms":60000}', { "Holdfast-Id": "p2" });
    expect(await ask("result.p2", "", { "Holdfast-Wait": "100ms" })).toMatchObject({
      ok: true,
      status: "running",
    });
    await accepted("orchestrations.p2.cancel", '{"reason":"done waiting"}');
    expect(await ask("result.p2")).toMatchObject({
      ok: true,
      status: "cancelled",
      error: { code: "cancelled", message: expect.stringContaining("done waiting") },
    });
  });

  it("terminates", async () => {
    await accepted("orchestrations.p3.start.wait-for-signal");
    await accepted("orchestrations.p3.terminate");
    expect(await ask("result.p3")).toMatchObject({ ok: true, status: "terminated" });
  });

  it("runs an id once, also with 1000 starts at the same time", async () => {
    await Promise.all(
      Array.from({ length: 1000 }, () => accepted("orchestrations.p4.start.steps", '{"n":3}')),
    );
    expect(await ask("result.p4")).toMatchObject({ status: "completed", output: 3, execution: 1 });
    const history = await cliJson("history", "p4");
    const kinds = history.map((event: { kind: string }) => event.kind);
    expect(kinds.filter((kind: string) => kind === "instance.started")).toHaveLength(1);
    expect(kinds.filter((kind: string) => kind === "activity.completed")).toHaveLength(3);
  });

  it("answers in words where something is wrong", async () => {
    expect(await ask("start.nope")).toEqual({
      ok: false,
      error: { code: "unknown_orchestration", message: expect.stringContaining("wait-for-signal") },
    });
    await accepted("orchestrations.p5.start.nope");
    expect(await ask("result.p5")).toMatchObject({
      status: "failed",
      error: { code: "unknown_orchestration" },
    });
    await accepted("orchestrations.p6.start.hello", "[1]");
    expect(await ask("result.p6")).toMatchObject({ status: "failed", error: { code: "invalid_input" } });
    expect(await ask("status.ghost")).toMatchObject({ ok: false, error: { code: "instance_not_found" } });
  });

  it("puts away what is not JSON, and says so", async () => {
    await accepted("orchestrations.p7.start.hello", "{not json");
    await accepted("orchestrations.p7.no.such.verb");
    const found = async () => {
      const { findings } = await cliJson("doctor");
      return findings.find((finding: { what: string }) => finding.what === "dead letters").found as string;
    };
    await until(async () => (await found()).startsWith("2"), "both are dead letters");
    expect(await ask("status.p7")).toMatchObject({ ok: false, error: { code: "instance_not_found" } });
    expect(await ask("start.hello", '{"name":"after"}')).toMatchObject({ ok: true });
  });

  async function cliJson(...args: string[]) {
    let stdout = "";
    await main(
      [...args, "--json", "--nats-url", dev.ready.natsUrl],
      {},
      { stdout: { write: (text: string) => (stdout += text) }, stderr: process.stderr },
    );
    return JSON.parse(stdout);
  }
});
