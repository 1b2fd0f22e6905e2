import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findNats, findServer } from "../../../services/cli/connection/find-nats.ts";
import { main } from "../../../services/cli/main.ts";
import { maskUrl, withoutLogin } from "../../../shared/runtime/server-address.ts";
import { Contexts } from "../../../shared/sdk/where/contexts.ts";
import { writeDevFile } from "../../../shared/sdk/where/dev-file.ts";

let dir: string;
let env: Record<string, string>;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "holdfast-contexts-"));
  env = { XDG_CONFIG_HOME: dir };
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function run(...args: string[]) {
  const said = { out: "", err: "" };
  const code = await main(["context", ...args], env, {
    stdout: { write: (text: string) => (said.out += text) },
    stderr: { write: (text: string) => (said.err += text) },
  });
  return { code, ...said };
}

describe("contexts", () => {
  it("are added, used, listed and removed, and never show a password", async () => {
    expect((await run("list")).out).toBe("no contexts\n");
    const secret = "nats://ada:hunter2@prod:4222";
    expect((await run("add", "prod", "--nats-url", secret, "--creds", "/keys/prod.creds")).code).toBe(0);
    expect(
      (await run("add", "dev", "--nats-url", "nats://localhost:4222", "--prefix", "d", "--use")).code,
    ).toBe(0);
    const listed = await run("list");
    expect(listed.out).toBe(
      [
        "   NAME  SERVER                 PREFIX  CREDENTIALS",
        "*  dev   nats://localhost:4222  d",
        "   prod  nats://***@prod:4222           /keys/prod.creds",
        "",
      ].join("\n"),
    );
    expect((await run("use", "prod")).code).toBe(0);
    const [dev, prod] = JSON.parse((await run("list", "--json")).out);
    expect({ dev, prod }).toEqual({
      dev: { name: "dev", current: false, natsUrl: "nats://localhost:4222", prefix: "d" },
      prod: { name: "prod", current: true, natsUrl: "nats://***@prod:4222", creds: "/keys/prod.creds" },
    });
    expect((await run("remove", "prod", "--json")).out).toBe('{"ok":true}\n');
    expect(new Contexts(env).current()).toBeUndefined();
    for (const verb of ["use", "remove"]) {
      expect(await run(verb, "prod")).toEqual({
        code: 3,
        out: "",
        err: "holdfast: there is no context prod (context_not_found)\n  `holdfast context list` shows the saved ones.\n",
      });
    }
    expect(await run("add", "a.b", "--nats-url", "x")).toMatchObject({ code: 2 });
    expect(await run("add", "nowhere")).toMatchObject({ code: 2 });
  });

  it("are readable by their owner alone, and a broken file is named", async () => {
    await run("add", "prod", "--nats-url", "nats://prod:4222");
    const { path } = new Contexts(env);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    writeFileSync(path, "{half");
    expect(await run("list")).toMatchObject({ code: 2, err: expect.stringContaining(path) });
  });

  it("lie in the home folder unless told otherwise", () => {
    expect(new Contexts({ HOME: "/home/ada" }).path).toBe("/home/ada/.config/holdfast/contexts.json");
  });
});

describe("the server to talk to", () => {
  const at = (choice: object, more: Record<string, string> = {}) => {
    const { env: found, from } = findServer(choice, { ...env, ...more });
    const { NATS_URL, NATS_CREDS, NATS_USER, HOLDFAST_PREFIX } = found;
    return { NATS_URL, NATS_CREDS, NATS_USER, HOLDFAST_PREFIX, from };
  };
  beforeEach(() => {
    const contexts = new Contexts(env);
    contexts.add("prod", { natsUrl: "nats://prod:1", creds: "/c", prefix: "p" }, true);
    contexts.add("test", { natsUrl: "nats://test:1" }, false);
  });

  it("is the option, a named context, the variable, a running dev, the current context, in this order", () => {
    const others = { NATS_URL: "nats://env:1", NATS_USER: "u", HOLDFAST_PREFIX: "e" };
    expect(at({ natsUrl: "nats://o:1", context: "prod" }, others)).toMatchObject({ NATS_URL: "nats://o:1" });
    expect(at({ context: "prod" }, others)).toEqual({
      NATS_URL: "nats://prod:1",
      NATS_CREDS: "/c",
      NATS_USER: undefined,
      HOLDFAST_PREFIX: "p",
      from: "context prod",
    });
    expect(at({ context: "test", prefix: "q" }, others)).toMatchObject({
      NATS_URL: "nats://test:1",
      NATS_CREDS: undefined,
      HOLDFAST_PREFIX: "q",
    });
    expect(at({}, others)).toMatchObject({ NATS_URL: "nats://env:1", NATS_USER: "u", from: "NATS_URL" });
    expect(at({})).toMatchObject({ NATS_URL: "nats://prod:1", from: "current context prod" });
    const dataDir = join(dir, "data");
    writeDevFile(dataDir, { pid: process.pid, natsUrl: "nats://dev:1", prefix: "", dashboard: "http://d" });
    expect(at({ dataDir }, others)).toMatchObject({ NATS_URL: "nats://dev:1", HOLDFAST_PREFIX: "" });
    expect(() => at({ context: "ghost" })).toThrow(/no context ghost/);
    // A folder that was named and has none is a mistake, not a reason to go elsewhere.
    expect(() => at({ dataDir: join(dir, "empty") })).toThrow(/no `holdfast dev` is running/);
  });

  it("is never the current context for a service", () => {
    expect(() => findNats({}, env)).toThrow(/no NATS server given/);
    expect(findNats({ context: "prod" }, env)).toMatchObject({ NATS_URL: "nats://prod:1" });
  });

  it("is shown without secrets", () => {
    expect(maskUrl("nats://a:b@h:1,tls://token@h2:2,nats://plain:4")).toBe(
      "nats://***@h:1,tls://***@h2:2,nats://plain:4",
    );
    expect(maskUrl("a:b@h:1, a:b@c@h2:2,plain:4"), "without a scheme, and with @ in the password").toBe(
      "***@h:1, ***@h2:2,plain:4",
    );
    expect(withoutLogin("a:b@h:1,nats://a:b/c@h2")).toBe("h:1,nats://h2");
  });
});
