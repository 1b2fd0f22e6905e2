/**
 * The gateway's process is there before NATS is: it stays, reports that to every caller, and goes on by
 * itself.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { pickFreePort } from "../../shared/embedded-nats/free-port.ts";
import { browserPath, launchBrowser } from "../support/gateway/browser.ts";
import { startNats } from "../support/nats/nats-server.ts";
import { until } from "../support/processes/stack.ts";

const bin = fileURLToPath(new URL("../../bin/holdfast.js", import.meta.url));

describe("a gateway that is there before NATS", () => {
  let child: ChildProcess;
  let natsPort: number;
  let log: string;
  let url: string;

  beforeEach(async () => {
    natsPort = await pickFreePort();
    log = "";
    child = fork(bin, ["gateway"], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: {
        PATH: process.env.PATH ?? "",
        HOME: process.env.HOME ?? "",
        NATS_URL: `nats://127.0.0.1:${natsPort}`,
        GATEWAY_PORT: "0",
      },
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      log += chunk.toString();
    });
    url = await until("the gateway's address", () => /"url":"(http[^"]+)"/.exec(log)?.[1]);
  });
  afterEach(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  });

  it("answers, says why it is not ready, and serves as soon as NATS is there", async () => {
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    const ready = await fetch(`${url}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toEqual({
      ok: false,
      why: "NATS is away: it has not answered since the gateway started",
    });
    const refused = await fetch(`${url}/api/instances`);
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ ok: false, error: { code: "bus_away" } });
    expect((await fetch(`${url}/metrics`)).status).toBe(503);
    expect(refused.headers.get("content-security-policy")).toContain("default-src 'none'");

    const nats = await startNats({ port: natsPort });
    try {
      await until("ready", async () => (await fetch(`${url}/readyz`)).ok);
      expect((await fetch(`${url}/api/instances`)).status).toBe(200);
    } finally {
      await nats.stop();
    }
  });

  it("says it once in its log, not at every attempt", async () => {
    await until("a complaint", () => log.includes("nats_unreachable"));
    const nats = await startNats({ port: natsPort });
    try {
      await until("ready", async () => (await fetch(`${url}/readyz`)).ok);
      expect(log.split("nats_unreachable").length - 1).toBe(1);
    } finally {
      await nats.stop();
    }
  });

  it("ends when told to, also while it waits", async () => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    expect((await exited)[0]).toBe(0);
  });

  it.skipIf(browserPath() === undefined)(
    "shows it in words in a browser, and the page by itself when NATS has come",
    async () => {
      const browser = await launchBrowser();
      try {
        const page = await browser.newPage();
        await page.goto(`${url}/sessions`);
        await page.getByRole("alert").getByText("NATS cannot be reached from the gateway").waitFor();
        const nats = await startNats({ port: natsPort });
        try {
          await page.getByRole("heading", { name: "Sessions" }).waitFor();
          await nats.kill();
          await page.getByRole("alert").getByText("NATS").first().waitFor();
          await nats.restart();
          await page.getByRole("alert").first().waitFor({ state: "detached" });
        } finally {
          await nats.stop();
        }
      } finally {
        await browser.close();
      }
    },
  );
});
