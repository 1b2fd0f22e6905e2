/**
 * Wrong input is refused with a message if its sender waits for an answer; otherwise it becomes a dead
 * letter.
 */
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, describe, expect, it } from "vitest";
import { checked } from "../apps/lifecycle.ts";
import { runCli } from "../support/processes/cli.ts";
import { installation } from "../support/processes/installation.ts";
import { until } from "../support/processes/stack.ts";

let nc: NatsConnection;
const world = installation({
  app: "lifecycle",
  watchers: 0,
  prepare: async ({ nats }) => {
    await nc?.close();
    nc = await connect({ servers: nats.url });
  },
});
afterAll(() => nc?.close());

const cli = (...args: string[]) =>
  runCli([...args, "--nats-url", world.stack.nats.url], { env: world.stack.login("gateway") });
const ask = async (subject: string, body = "") =>
  (await nc.request(subject, body, { timeout: 20_000 })).json<Record<string, unknown>>();

const badIds = ["a.b", "a*", ">", "a b", "a\0b", "x".repeat(129), "", "ä"];

describe("ids", () => {
  it.each(badIds)("%j is refused by the client, before any subject is built", async (id) => {
    const refused = { code: "invalid_id", message: expect.stringContaining("1 to 128") };
    const { client } = world;
    await expect(client.start("steps", { n: 1 }, { id })).rejects.toMatchObject(refused);
    await expect(client.signal(id, "word")).rejects.toMatchObject(refused);
    await expect(client.cancel(id)).rejects.toMatchObject(refused);
    await expect(client.terminate(id)).rejects.toMatchObject(refused);
    await expect(client.status(id)).rejects.toMatchObject(refused);
    await expect(client.result(id)).rejects.toMatchObject(refused);
    await expect(client.history(id)).rejects.toMatchObject(refused);
    await expect(client.signal("good", id)).rejects.toMatchObject(refused);
  });

  it("are refused by the command line with exit code 2", async () => {
    // A NUL cannot be part of an argument at all.
    for (const id of ["a.b", "a b", ">", "x".repeat(129)]) {
      const finished = await cli("start", "steps", "--id", id, "--input", '{"n":1}');
      expect(finished).toMatchObject({ code: 2, stdout: "" });
      expect(finished.stderr).toContain("1 to 128");
    }
  });

  it("over plain NATS: refused in words by the endpoints, put away where nobody is asked", async () => {
    const long = "x".repeat(129);
    expect(await ask(`status.${long}`)).toMatchObject({ ok: false, error: { code: "invalid_id" } });
    expect(await ask(`orchestrations.${long}.start.steps`, '{"n":1}')).toMatchObject({ stream: "INBOX" });
    const letter = await until("it is a dead letter", async () =>
      (await world.streams.deadLetters()).find(({ subject }) => subject.includes(long)),
    );
    expect(letter.reason.code).toBe("invalid_id");
    expect(letter.reason.message).toContain("1 to 128");
    expect(letter.subject).toBe(`orchestrations.${long}.start.steps`);
  });
});

it("shows an unknown orchestration as failed, with the names there are", async () => {
  const handle = await world.client.start("nope", null, { id: "unknown-1" });
  await expect(handle.result({ timeout: "20s" })).rejects.toMatchObject({
    code: "unknown_orchestration",
    message: expect.stringMatching(/checked.*steps/),
  });
  expect(await world.client.status("unknown-1")).toMatchObject({ status: "failed" });
  await world.streams.checkEnded(["unknown-1"], "instance.failed");
});

it("names the path of what is wrong with an input: at the client, and in the instance for everybody else", async () => {
  const bad = { order: { lines: [{ amount: 1 }, { amount: -2 }] } };
  const refused = { code: "invalid_input", message: expect.stringContaining("order.lines.1.amount") };
  await expect(world.client.start(checked, bad, { id: "bad-1" })).rejects.toMatchObject(refused);
  await expect(world.client.status("bad-1")).rejects.toMatchObject({ code: "instance_not_found" });
  const byName = await world.client.start("checked", bad, { id: "bad-2" });
  await expect(byName.result({ timeout: "20s" })).rejects.toMatchObject(refused);
  expect((await world.client.status("bad-2")).status).toBe("failed");
});

it("F32: puts away what is not JSON, not a subject, or not a message, and goes on", async () => {
  const before = (await world.streams.deadLetters()).length;
  const wrong: [string, string][] = [
    ["orchestrations.f32.start.steps", "{not json"],
    ["orchestrations.f32.start.steps", "[".repeat(10_000)],
    ["orchestrations.f32.signal.word", "\u0000"],
    ["orchestrations.f32.start", "{}"],
    ["orchestrations.f32.start.a.b", "{}"],
    ["orchestrations.f32.explode", "{}"],
    ["orchestrations.f32.activity", '{"v":99}'],
    ["orchestrations.f32.session", '{"v":1,"__proto__":{"x":1}}'],
    ["orchestrations.f32.child", "null"],
    ["orchestrations.f32.wake", '"?"'],
    ["orchestrations.f32.cancel", '{"reason":7}'],
  ];
  for (const [subject, body] of wrong) expect(await ask(subject, body)).toMatchObject({ stream: "INBOX" });
  const letters = await until("all are dead letters", async () => {
    const all = await world.streams.deadLetters();
    return all.length >= before + wrong.length && all.slice(before);
  });
  expect(letters.map(({ id }) => id)).toContain("f32");
  for (const letter of letters) {
    expect(letter.subject).toMatch(/^orchestrations\.f32\./);
    expect(letter.reason.message).not.toBe("");
  }
  const doctor = await cli("doctor", "--json");
  const { findings } = JSON.parse(doctor.stdout) as { findings: { what: string; found: string }[] };
  expect(findings.find(({ what }) => what === "dead letters")?.found).toMatch(
    new RegExp(`^${before + wrong.length}`),
  );
  await expect(world.client.status("f32")).rejects.toMatchObject({ code: "instance_not_found" });
  const healthy = await world.client.start("steps", { n: 2 }, { id: "f32" });
  expect(await healthy.result({ timeout: "20s" })).toBe(2);
  await world.streams.untilQuiet();
});

it("F37: runs an id once, however many start it at the same time", async () => {
  const starts = Array.from({ length: 1000 }, (_, i) =>
    world.client.start("steps", { n: 3 }, { id: "same" }).then(({ instanceId }) => `${instanceId}${i}`),
  );
  expect(new Set(await Promise.all(starts)).size).toBe(1000);
  // The server forgets message ids; the instance does not forget that it was started.
  for (let i = 0; i < 20; i++) await ask("orchestrations.same.start.steps", '{"n":5}');
  expect(await world.client.result("same", { timeout: "20s" })).toBe(3);
  await ask("orchestrations.same.start.steps", '{"n":7}');
  await world.streams.untilQuiet();
  const kinds = await world.streams.kinds("same");
  expect(kinds.filter((kind) => kind === "instance.started")).toHaveLength(1);
  expect(kinds.filter((kind) => kind === "activity.completed")).toHaveLength(3);
  await world.streams.checkEnded(["same"]);
});

it.each(["cancel", "terminate"])(
  "a %s for an instance nobody started is put away visibly, whoever sent it",
  async (verb) => {
    const id = `ghost-${verb}`;
    const refused = { code: "instance_not_found" };
    await expect(world.client[verb as "cancel"](id)).rejects.toMatchObject(refused);
    await ask(`orchestrations.${id}.${verb}`);
    // A signal that waits for a start is not a start.
    await world.client.signal(id, "word", 1);
    await until("the signal is kept", async () => (await world.client.status(id)).events === 1);
    await expect(world.client[verb as "cancel"](id)).rejects.toMatchObject(refused);
    await ask(`orchestrations.${id}.${verb}`);
    const letters = await until("both are dead letters", async () => {
      const all = (await world.streams.deadLetters()).filter((letter) => letter.id === id);
      return all.length === 2 && all;
    });
    for (const { reason } of letters) expect(reason).toMatchObject({ code: "instance_not_found" });
  },
);
