/** A schedule by SDK, HTTP, plain NATS and command line, on real services. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { main } from "../../services/cli/main.ts";
import { encode } from "../../shared/bus/index.ts";
import type { ScheduleSpec } from "../../shared/sdk/index.ts";
import { type ServiceProcess, Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../examples/schedule/app.ts", import.meta.url));
let stack: Stack;
let url = "";
beforeAll(async () => {
  stack = await Stack.start({ app, workers: 0, watchers: 0, env: { GATEWAY_PORT: "0" } });
  url = addressOf(await stack.run("gateway"));
});
afterAll(() => stack?.[Symbol.asyncDispose]());

function addressOf(gateway: ServiceProcess): string {
  const address = /http:\/\/[\d.]+:\d+/.exec(gateway.log())?.[0];
  if (!address) throw new Error(`no address in ${gateway.log()}`);
  return address;
}

const spec = (more: object) =>
  ({ orchestration: "daily-report", input: { shop: "corner" }, ...more }) as unknown as ScheduleSpec;
const post = async (path: string, body: object) => {
  const response = await fetch(`${url}/api/schedules/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
};
const get = async (path: string) => JSON.parse(await (await fetch(`${url}/api/schedules${path}`)).text());
const ask = async (id: string, body?: object) => {
  const reply = await stack.bus.request(`schedule.${id}`, body ? encode(body) : new Uint8Array(), {
    timeoutMs: 5000,
  });
  if (reply.kind !== "reply") throw new Error(reply.kind);
  return JSON.parse(new TextDecoder().decode(reply.body));
};
async function cli(...args: string[]) {
  const said = { out: "", err: "" };
  const streams = {
    stdout: { write: (text: string) => (said.out += text) },
    stderr: { write: (text: string) => (said.err += text) },
  };
  const code = await main(
    ["schedule", ...args, "--nats-url", stack.nats.url],
    stack.login("gateway"),
    streams,
  );
  return { code, ...said };
}
/** Of a run that may not be started yet. */
const output = async (instanceId: string) =>
  (await stack.client.waitForEnd(instanceId, 10_000, { known: true }))?.output;
const status = (id: string, wanted: string) =>
  until(`${id} is ${wanted}`, async () => (await stack.client.schedules.describe(id)).status === wanted);

it("by the SDK: made, looked at, triggered, paused, resumed, backfilled, deleted", async () => {
  const { schedules } = stack.client;
  await schedules.create("sdk", spec({ cron: "0 2 * * *", timeZone: "Europe/Berlin" }));
  await status("sdk", "active");
  const view = await schedules.describe("sdk");
  expect(view.next).toHaveLength(10);
  expect(view.spec).toMatchObject({ cron: "0 2 * * *" });
  await expect(schedules.create("sdk", spec({ every: "1h" }))).rejects.toMatchObject({
    code: "schedule_exists",
  });
  const { instanceId } = await schedules.trigger("sdk");
  expect(await output(instanceId)).toMatch(/^corner/);
  await schedules.pause("sdk", "holidays");
  await status("sdk", "paused");
  expect(await schedules.describe("sdk")).toMatchObject({ note: "holidays", next: [] });
  await schedules.resume("sdk");
  await status("sdk", "active");
  const to = Date.parse("2026-11-10T12:00:00Z");
  const { times } = await schedules.backfill("sdk", { from: to - 2 * 86_400_000, to, overlap: "buffer-all" });
  expect(times).toHaveLength(2);
  expect(await output("sdk-20261110T010000Z")).toMatch(/^corner/);
  expect((await schedules.list()).map(({ scheduleId }) => scheduleId)).toContain("sdk");
  await schedules.delete("sdk");
  await status("sdk", "finished");
  await expect(schedules.pause("sdk")).rejects.toMatchObject({ code: "schedule_ended" });
  await expect(schedules.describe("nobody")).rejects.toMatchObject({ code: "schedule_not_found" });
  await expect(schedules.trigger("nobody")).rejects.toMatchObject({ code: "schedule_not_found" });
});

it("by HTTP", async () => {
  expect(await post("http", { spec: spec({ every: "1h" }) })).toMatchObject({
    status: 202,
    body: { ok: true },
  });
  await status("http", "active");
  expect(await post("http", { spec: spec({ every: "1h" }) })).toMatchObject({ status: 409 });
  expect(await post("http", { spec: spec({ every: "2h" }), replace: true })).toMatchObject({ status: 202 });
  await until("it is changed", async () => (await get("/http")).spec.every === "2h");
  expect((await get("/http")).next).toHaveLength(10);
  expect((await get("")).rows).toContainEqual(expect.objectContaining({ scheduleId: "http" }));
  const { body } = await post("http/trigger", {});
  expect(await output(body.instanceId)).toMatch(/^corner/);
  expect(await post("http/pause", { note: "why not" })).toMatchObject({ status: 202 });
  await status("http", "paused");
  expect(await post("http/resume", {})).toMatchObject({ status: 202 });
  expect(
    await post("http/backfill", {
      from: "2026-11-01T00:00:00Z",
      to: "2026-11-01T05:00:00Z",
      overlap: "allow",
    }),
  ).toMatchObject({ status: 202, body: { times: 3 } });
  expect(await post("http/delete", {})).toMatchObject({ status: 202 });
  await status("http", "finished");
  const wrong = await post("wrong", { spec: spec({ cron: "0 25 * * *" }) });
  expect(wrong).toMatchObject({ status: 400, body: { error: { code: "invalid_schedule" } } });
  expect(wrong.body.error.message).toContain("there is no hour: 25");
  expect(await post("nobody/pause", {})).toMatchObject({ status: 404 });
});

it("by plain NATS", async () => {
  expect(await ask("plain", { do: "create", spec: spec({ every: "1h" }) })).toEqual({
    ok: true,
    scheduleId: "plain",
  });
  await status("plain", "active");
  const view = await ask("plain");
  expect(view).toMatchObject({ ok: true, scheduleId: "plain", status: "active" });
  expect(view.next).toHaveLength(10);
  expect(await ask("plain", { do: "pause", note: "rain" })).toMatchObject({ ok: true });
  await status("plain", "paused");
  expect(await ask("plain")).toMatchObject({ note: "rain", next: [] });
  expect(await ask("plain", { do: "resume" })).toMatchObject({ ok: true });
  expect(await ask("plain", { do: "update", spec: spec({ every: "2h" }) })).toMatchObject({ ok: true });
  await until("it is changed", async () => (await ask("plain")).spec.every === "2h");
  const day = { from: "2026-11-01T00:00:00Z", to: "2026-11-01T05:00:00Z" };
  expect(await ask("plain", { do: "backfill", ...day, overlap: "allow" })).toMatchObject({ ok: true });
  expect(await output("plain-20261101T020000Z")).toMatch(/^corner/);
  expect(await ask("nobody", { do: "pause" })).toMatchObject({ error: { code: "schedule_not_found" } });
  const { instanceId } = await ask("plain", { do: "trigger" });
  expect(await output(instanceId)).toMatch(/^corner/);
  expect(await ask("plain", { do: "dance" })).toMatchObject({
    ok: false,
    error: { code: "invalid_request" },
  });
  expect(await ask("plain", { do: "create", spec: spec({}) })).toMatchObject({
    ok: false,
    error: { code: "invalid_schedule" },
  });
  expect(await ask("plain", { do: "delete" })).toMatchObject({ ok: true });
  await status("plain", "finished");
});

it("by the command line", async () => {
  const made = await cli("create", "typed", "daily-report", "--every", "1h", "--input", '{"shop":"corner"}');
  expect(made).toMatchObject({ code: 0, err: "schedule typed created\n" });
  await status("typed", "active");
  expect((await cli("list")).out).toMatch(/typed +active +daily-report +every 1h/);
  expect((await cli("show", "typed")).out).toMatch(/overlap +skip/);
  expect(JSON.parse((await cli("show", "typed", "--json")).out).next).toHaveLength(10);
  const all = {
    jitter: "1m",
    overlap: "cancel-other",
    catchUp: "2h",
    limit: 7,
    startAt: "2026-01-01T00:00:00Z",
    endAt: "2099-01-01T00:00:00Z",
  };
  const options = Object.entries(all).flatMap(([name, value]) => [
    `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    String(value),
  ]);
  const changed = ["--cron", "0 9 * * 1-5", "--time-zone", "Europe/Berlin", ...options, "--replace"];
  expect(
    await cli("create", "typed", "daily-report", "--input", '{"shop":"corner"}', ...changed),
  ).toMatchObject({ code: 0 });
  const described = () => stack.client.schedules.describe("typed");
  await until("it is changed", async () => (await described()).spec?.cron !== undefined);
  expect((await described()).spec).toMatchObject(all);
  await until("seven are left", async () => (await described()).next.length === 7);
  expect(
    await cli(
      "create",
      "typed",
      "daily-report",
      "--every",
      "1h",
      "--input",
      '{"shop":"corner"}',
      "--replace",
    ),
  ).toMatchObject({ code: 0 });
  await until("it is changed back", async () => (await described()).spec?.every !== undefined);
  const triggered = await cli("trigger", "typed", "--json");
  expect(await output(JSON.parse(triggered.out).instanceId)).toMatch(/^corner/);
  expect(await cli("pause", "typed", "--note", "why not")).toMatchObject({ code: 0 });
  await status("typed", "paused");
  expect(await cli("resume", "typed")).toMatchObject({ code: 0 });
  expect(
    await cli("backfill", "typed", "--from", "2026-11-01T00:00:00Z", "--to", "2026-11-01T01:00:00Z"),
  ).toMatchObject({ code: 0, err: "2 times of schedule typed to be run\n" });
  expect(await cli("delete", "typed", "--yes")).toMatchObject({ code: 0 });
  await status("typed", "finished");
  const wrong = await cli("create", "wrong", "daily-report", "--cron", "61 * * * *");
  expect(wrong.code).toBe(2);
  expect(await cli("pause", "nobody")).toMatchObject({ code: 3 });
  expect(wrong.err).toContain("there is no minute: 61");
});
