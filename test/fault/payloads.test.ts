/** Values far larger than a message: in, through an activity, out, and refused where they are too large. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Streams } from "../support/nats/streams.ts";
import { Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/lifecycle.ts", import.meta.url));
const megabyte = 1024 * 1024;

let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start({ app, watchers: 0 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

it.each([
  ["just under the inline limit", 200 * 1024],
  ["just over it", 300 * 1024],
  ["1 MB", megabyte],
  ["64 MB", 64 * megabyte],
])(
  "%s there and back: client, activity, result",
  async (_what, bytes) => {
    const value = { text: "ü".repeat(bytes / 2) };
    const handle = await stack.client.start("mirror", value, { id: `mirror-${bytes}` });
    const back = (await handle.result({ timeout: "100s" })) as typeof value;
    // Not toEqual: the difference would be too long to read.
    expect(back.text === value.text).toBe(true);
    await new Streams(stack).checkEnded([handle.instanceId]);
  },
  120_000,
);

it("through a signal", async () => {
  const handle = await stack.client.start("listener", { n: 2 });
  await handle.signal("word", "x".repeat(2 * megabyte));
  await handle.signal("word", "small");
  const [big, small] = (await handle.result({ timeout: "40s" })) as string[];
  expect([big?.length, small]).toEqual([2 * megabyte, "small"]);
});

it.each([
  ["as large as a message can be", "mirror", 1_048_500, undefined],
  ["together with its result larger than a message", "listener", 850_000, 250_000],
])("a plain message %s", async (what, name, inputBytes, signalBytes) => {
  const id = what.replaceAll(" ", "-");
  const input = name === "listener" ? { n: 1, ballast: "x".repeat(inputBytes) } : "x".repeat(inputBytes);
  const send = (subject: string, value: unknown) =>
    stack.bus.publish(subject, new TextEncoder().encode(JSON.stringify(value)));
  expect((await send(stack.names.start(id, name), input)).kind).toBe("stored");
  const word = signalBytes === undefined ? undefined : "w".repeat(signalBytes);
  if (word !== undefined) await send(stack.names.signal(id, "word"), word);
  const result = await stack.client.result(id, { timeout: "40s" });
  expect(JSON.stringify(result) === JSON.stringify(word === undefined ? input : [word])).toBe(true);
  const status = await stack.client.status(id);
  expect(JSON.stringify(status.input) === JSON.stringify(input), "what went in is still known").toBe(true);
  await new Streams(stack).checkEnded([id]);
});

it("hundreds of kilobytes many times over fit into one history", async () => {
  const inputs = Array.from({ length: 20 }, (_, i) => stack.client.start("mirror", `${i}`.repeat(200_000)));
  const results = await Promise.all((await Promise.all(inputs)).map((one) => one.result({ timeout: "60s" })));
  expect(results.every((value, i) => value === `${i}`.repeat(200_000))).toBe(true);
});

it("above the limit: refused by the client in words; made by an activity, it fails that activity", async () => {
  const limit = 128 * megabyte;
  await expect(stack.client.start("mirror", "x".repeat(limit), { id: "too-big" })).rejects.toMatchObject({
    code: "payload_too_large",
    message: expect.stringMatching(/134217728/),
  });
  await expect(stack.client.status("too-big")).rejects.toMatchObject({ code: "instance_not_found" });
  const grown = await stack.client.start("grown", limit, { id: "grown" });
  await expect(grown.result({ timeout: "100s" })).rejects.toMatchObject({ code: "payload_too_large" });
  const healthy = await stack.client.start("grown", 10, {});
  expect(await healthy.result({ timeout: "20s" })).toBe(10);
}, 120_000);

it.each([
  ["larger than the limit", { bytes: 128 * megabyte, levels: 0 }, "payload_too_large"],
  ["nested deeper than anybody reads", { bytes: 0, levels: 300 }, "not_serialisable"],
])(
  "made by an orchestration, %s: told to its code, and fails it when returned; the others go on",
  async (_what, input, code) => {
    const handle = await stack.client.start("swollen", input);
    await expect(handle.result({ timeout: "100s" })).rejects.toMatchObject({ code });
    expect(await handle.status()).toMatchObject({ status: "failed", customStatus: [code] });
    expect(await (await stack.client.start("grown", 10)).result({ timeout: "60s" })).toBe(10);
  },
  120_000,
);

it("a start that refers to a value nobody stored is set aside with its reason", async () => {
  const blob = { key: "nobody/nothing", bytes: 10, sha256: "0".repeat(64) };
  const headers = { "Holdfast-Blob": JSON.stringify(blob) };
  await stack.bus.publish(stack.names.start("hollow", "mirror"), new Uint8Array(), { headers });
  const status = await until("it is parked", async () => {
    const now = await stack.client.status("hollow");
    return now.status === "parked" && now;
  });
  expect(status.error).toMatchObject({
    code: "blob_missing",
    message: expect.stringContaining("nobody/nothing"),
  });
  await stack.client.terminate("hollow");
  await expect(stack.client.result("hollow", { timeout: "20s" })).rejects.toMatchObject({
    code: "terminated",
  });
});
