import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Contexts } from "../../../shared/sdk/where/contexts.ts";
import { writeDevFile } from "../../../shared/sdk/where/dev-file.ts";
import { whereToConnect } from "../../../shared/sdk/where/where-to-connect.ts";

const folder = () => mkdtempSync(join(tmpdir(), "holdfast-where-"));

it("takes NATS_URL, then the dev of this folder, then the current context", () => {
  const data = folder();
  const env = { XDG_CONFIG_HOME: folder() };
  expect(() => whereToConnect(env, data)).toThrow(/no NATS server given/);
  new Contexts(env).add("work", { natsUrl: "nats://work:4222", creds: "/a.creds", prefix: "w" }, true);
  expect(whereToConnect(env, data)).toEqual({
    url: "nats://work:4222",
    credsFile: "/a.creds",
    prefix: "w",
  });
  writeDevFile(data, { pid: process.pid, natsUrl: "nats://127.0.0.1:20001", prefix: "" });
  expect(whereToConnect(env, data)).toEqual({ url: "nats://127.0.0.1:20001", prefix: "" });
  const named = { ...env, NATS_URL: "nats://a:1, nats://b:1", NATS_TOKEN: "t" };
  expect(whereToConnect(named, data)).toMatchObject({ url: ["nats://a:1", "nats://b:1"], token: "t" });
});

it("ignores a dev that is gone", () => {
  const data = folder();
  writeDevFile(data, { pid: 2 ** 30, natsUrl: "nats://127.0.0.1:20001", prefix: "" });
  expect(() => whereToConnect({ XDG_CONFIG_HOME: folder() }, data)).toThrow(/no NATS server given/);
});
