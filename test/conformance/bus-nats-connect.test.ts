/** Getting a connection, or one clear sentence why not. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bus, connectBus } from "../../shared/bus/index.ts";
import { type Happening, silent } from "../../shared/runtime/index.ts";
import { startGreeting } from "../support/nats/greeting-server.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";
import { bytes } from "./rig.ts";

const config = (code: string) => expect.objectContaining({ name: "Fault", kind: "config", code });

describe("connecting", () => {
  it("names the version found and the one needed", async () => {
    const old = await startGreeting({ version: "2.10.4", jetstream: true });
    const failing = connectBus({ url: old.url, announce: silent });
    await expect(failing).rejects.toEqual(config("nats_too_old"));
    await expect(failing).rejects.toThrow(/version 2\.10\.4.*2\.14\.0/);
    await old.stop();
  });

  it("says when there is no JetStream", async () => {
    const bare = await startGreeting({ version: "2.15.1" });
    await expect(connectBus({ url: bare.url, announce: silent })).rejects.toEqual(
      config("jetstream_disabled"),
    );
    await bare.stop();
  });

  it.each([
    ["Authorization Violation", "nats_unauthorized"],
    ["Authentication Timeout", "nats_unreachable"],
  ])("a wrong key is a wrong setting, a log-in that came late is not: %s", async (refusal, code) => {
    const server = await startGreeting({ version: "2.15.1", jetstream: true }, undefined, refusal);
    await expect(connectBus({ url: server.url, announce: silent })).rejects.toEqual(config(code));
    await server.stop();
  });

  // What real servers answered: three of which two were killed, and an account without JetStream.
  const leaderless = { code: 503, err_code: 10008, description: "JetStream system temporarily unavailable" };
  const disabled = { code: 503, err_code: 10039, description: "JetStream not enabled for account" };

  it.each([{ error: leaderless }, "nobody" as const])(
    "a cluster without a leader, or a server that is just ending, is no wrong setting: %j",
    async (said) => {
      let answer: object | "nobody" = said;
      const server = await startGreeting({ version: "2.15.1", jetstream: true }, () => answer);
      await expect(connectBus({ url: server.url, announce: silent })).rejects.toMatchObject({
        kind: "transient",
        code: "nats_unavailable",
      });
      const heard: Happening[] = [];
      const waiting = connectBus({
        url: server.url,
        waitForServer: true,
        announce: (happening) => heard.push(happening),
      });
      await expect.poll(() => heard).toMatchObject([{ kind: "fault", code: "nats_unavailable" }]);
      answer = {};
      const bus = await waiting;
      await bus.close();
      await server.stop();
    },
  );

  it("does not wait for an account without JetStream", async () => {
    const server = await startGreeting({ version: "2.15.1", jetstream: true }, () => ({ error: disabled }));
    const failing = connectBus({ url: server.url, waitForServer: true, announce: silent });
    await expect(failing).rejects.toEqual(config("jetstream_disabled"));
    await server.stop();
  });

  it("logs in with what stands in the address, unless it is told another login", async () => {
    const server = await startNats({
      extraConfig:
        'authorization { users = [{ user: ada, password: "p:w%d" }, { user: eve, password: eve }] }',
    });
    const withLogin = (login: string) => server.url.replace("//", `//${login}@`);
    const open = (options: { url: string; user?: string; pass?: string }) =>
      connectBus({ ...options, announce: silent });
    for (const options of [
      { url: withLogin("ada:p%3Aw%25d") },
      { url: withLogin("ada:p:w%d") },
      { url: withLogin("ada:wrong"), user: "eve", pass: "eve" },
    ])
      await (await open(options)).close();
    await expect(open({ url: withLogin("ada:wrong") })).rejects.toEqual(config("nats_unauthorized"));
    await server.stop();
  });

  it("says when nobody is there, and never shows a password", async () => {
    const gone = await startGreeting({ version: "2.15.1" });
    await gone.stop();
    const failing = connectBus({ url: gone.url.replace("//", "//me:secret@"), announce: silent });
    await expect(failing).rejects.toEqual(config("nats_unreachable"));
    await expect(failing).rejects.not.toThrow(/secret/);
  });

  it("says that there is no such host", async () => {
    const failing = connectBus({ url: "nats://nosuch.invalid:4222", announce: silent });
    await expect(failing).rejects.toMatchObject({
      code: "nats_unreachable",
      message: "no NATS server answers at nats://nosuch.invalid:4222: there is no host of that name",
      hint: expect.stringContaining("NATS_URL"),
    });
  });

  it("waits for a server that is not there yet", async () => {
    const first = await startNats();
    const { port, url } = first;
    await first.stop();
    const heard: Happening[] = [];
    let connected = false;
    const waiting = connectBus({
      url,
      waitForServer: true,
      announce: (happening) => heard.push(happening),
    }).then((bus) => {
      connected = true;
      return bus;
    });
    await expect.poll(() => heard.length).toBe(1);
    expect(heard[0]).toMatchObject({ kind: "fault", code: "nats_unreachable" });
    expect(connected).toBe(false);
    const second = await startNats({ port });
    const bus = await waiting;
    expect(heard.at(-1)).toMatchObject({ kind: "bus.connected", version: second.version });
    await bus.close();
    await second.stop();
    const abort = new AbortController();
    const never = connectBus({ url, waitForServer: true, signal: abort.signal, announce: silent });
    abort.abort();
    await expect(never).rejects.toEqual(config("nats_unreachable"));
  });
});

describe("permissions", () => {
  let server: TestNats;
  let admin: Bus;
  beforeAll(async () => {
    server = await startNats({
      extraConfig: `
        accounts {
          A { jetstream: enabled, users: [
            { user: admin, password: a },
            { user: weak, password: w, permissions: { publish: ["ok.>", "$JS.API.>"], subscribe: ["_weak.>"] } } ] }
          B { users: [ { user: plain, password: p } ] }
        }`,
    });
    admin = await connectBus({ url: server.url, user: "admin", pass: "a", announce: silent });
  });
  afterAll(async () => {
    await admin.close();
    await server.stop();
  });

  it("says when the credentials are wrong or the account has no JetStream", async () => {
    const as = (user: string, pass: string) => connectBus({ url: server.url, user, pass, announce: silent });
    await expect(as("admin", "wrong")).rejects.toEqual(config("nats_unauthorized"));
    await expect(as("plain", "p")).rejects.toEqual(config("jetstream_disabled"));
  });

  it("says at once what the user may not do", async () => {
    await admin.ensureStream({ name: "S", subjects: ["ok.>", "no.>"], retention: "limits" });
    const weak = await connectBus({
      url: server.url,
      user: "weak",
      pass: "w",
      inboxPrefix: "_weak",
      announce: silent,
    });
    expect(await weak.publish("ok.a", bytes("1"))).toMatchObject({ kind: "stored" });
    await expect(weak.publish("no.a", bytes("1"))).rejects.toEqual(config("permission_denied"));
    expect(await weak.publish("ok.b", bytes("1"))).toMatchObject({ kind: "stored", seq: 2 });
    await weak.close();
  });
});
