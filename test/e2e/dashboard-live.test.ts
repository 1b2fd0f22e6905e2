/** The dashboard before a whole installation of real processes: what is clicked is done, what happens is seen. */
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { browserPath, launchBrowser } from "../support/gateway/browser.ts";
import { runCli } from "../support/processes/cli.ts";
import { Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../support/apps/dashboard-app.ts", import.meta.url));

describe.skipIf(browserPath() === undefined)("the dashboard before a running engine", () => {
  let stack: Stack;
  let browser: Browser;
  let page: Page;
  let url: string;

  beforeAll(async () => {
    stack = await Stack.start({
      app,
      workers: 2,
      env: { WORKER_REGISTER_EVERY: "500ms", WORKER_LEASE_TTL: "2s" },
    });
    const gateway = await stack.run("gateway", { GATEWAY_PORT: "0" });
    url = await until("the gateway's address", () => /"url":"(http[^"]+)"/.exec(gateway.log())?.[1]);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    page = await browser.newPage();
    page.setDefaultTimeout(30_000);
  });

  const owners = () =>
    page.evaluate<string[]>(
      "[...document.querySelectorAll('.segment.held')].map((one) => one.dataset.owner)",
    );

  it("finds nothing wrong with a sound installation that has a timer to wait for", async () => {
    await stack.client.schedules.create("yearly", { orchestration: "hello", cron: "0 0 1 1 *" });
    await until("its timer", async () => ((await stack.bus.streamInfo("TIMERS"))?.messages ?? 0) > 0);
    await page.goto(url);
    await page.getByText("Everything is as it should be.").waitFor();
    await page.goto(`${url}/queues`);
    await page.getByRole("row", { name: /TIMERS.*timers and schedules/ }).waitFor();
    expect(await page.getByRole("heading", { name: "TIMERS" }).count()).toBe(0);
  });

  it("starts one from the form and watches it finish", async () => {
    await page.goto(`${url}/start?name=hello`);
    await page.getByRole("textbox", { name: "name" }).fill("Ada");
    await page.getByRole("button", { name: "Start hello" }).click();
    await page.waitForURL(/\/orchestrations\/hello-/);
    await page.getByText("completed").first().waitFor();
    await page.getByText('"Hello, Ada!"').first().waitFor();
    await page.getByText("instance.completed").waitFor();
  });

  it("sends a signal somebody waits for", async () => {
    await stack.client.start("approval", undefined, { id: "ask-1" });
    await page.goto(`${url}/orchestrations/ask-1`);
    await page.getByRole("button", { name: "Signal…" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("approve");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("completed").first().waitFor();
    expect(await stack.client.result("ask-1")).toEqual({ approved: {} });
  });

  it("names on its page what an instance takes: one click asks, another sends", async () => {
    await stack.client.start("tray", undefined, { id: "tray-1" });
    await page.goto(`${url}/orchestrations/tray-1`);
    const takes = page.getByRole("group", { name: "Messages it takes now" });
    await takes.getByRole("button", { name: "signal served" }).waitFor();
    await takes.getByRole("button", { name: "update put" }).click();
    await page.getByLabel("Input (JSON)").fill('"a pot"');
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("status").getByText("1").waitFor();
    await page.getByRole("button", { name: "Back" }).click();
    await takes.getByRole("button", { name: "query contents" }).click();
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await page.getByRole("status").getByText("a pot").waitFor();
  });

  it("shows the session's bar change its owner after a SIGKILL", async () => {
    await stack.client.start("diary", { pages: 60 }, { id: "diary-1" });
    await page.goto(`${url}/orchestrations/diary-1`);
    await page.locator(".segment.held").first().waitFor();
    const [first] = await owners();
    const victim = await until("the holder's process", async () => {
      const worker = (await stack.client.workers.list()).find(({ workerId }) => workerId === first);
      return worker && stack.of("worker").find(({ pid }) => pid === worker.pid);
    });
    victim.kill("SIGKILL");
    await page.locator(".mark-lost").waitFor();
    await page.locator(".mark-reclaimed").waitFor();
    const after = await until("two owners", async () => {
      const found = await owners();
      return found.length >= 2 && found;
    });
    expect(after[0]).toBe(first);
    expect(after.at(-1)).not.toBe(first);
    // Both count the loss, though another worker claimed the session at once.
    const overview = await browser.newPage();
    await overview.goto(url);
    await overview.getByText("1 session lost in the last minute").waitFor();
    await overview.close();
    const args = ["top", "--jsonl", "--count", "1", "--nats-url", stack.nats.url];
    const top = await runCli(args, { env: stack.login("gateway") });
    expect(JSON.parse(top.stdout)).toMatchObject({ lostPerMinute: 1 });
    expect(await stack.client.result("diary-1", { timeout: "60s" })).toBe(60);
    await page.getByText("completed").first().waitFor();
    await stack.run("worker");
  }, 180_000);

  it("shows a lease that renews by itself, and evicts its session", async () => {
    await stack.client.start("diary", { pages: 400 }, { id: "diary-2" });
    await page.goto(`${url}/sessions`);
    const row = page.locator("tr", { hasText: "diary-2" });
    const lease = row.locator(".lease");
    await lease.waitFor();
    const renewed = await lease.getAttribute("data-renewed");
    await until("a renewal", async () => (await lease.getAttribute("data-renewed")) !== renewed);
    const epoch = await row.locator("td").nth(3).textContent();
    await row.getByRole("button", { name: "Evict…" }).click();
    await page.getByRole("button", { name: "Evict it" }).click();
    await until("a new epoch", async () => (await row.locator("td").nth(3).textContent()) !== epoch);
    await row.getByRole("link", { name: /diary-2/ }).click();
    await page.getByText("evicted").first().waitFor();
    await stack.client.terminate("diary-2");
  });

  it("drains a session: another worker goes on with it", async () => {
    await stack.client.start("diary", { pages: 400 }, { id: "diary-3" });
    await page.goto(`${url}/sessions`);
    const row = page.locator("tr", { hasText: "diary-3" });
    await row.locator(".lease").waitFor();
    const epoch = await row.locator("td").nth(3).textContent();
    await row.getByRole("button", { name: "Drain…" }).click();
    await page.getByRole("dialog").getByText("holdfast sessions drain diary-3").waitFor();
    await page.getByRole("button", { name: "Drain it" }).click();
    await until("a new epoch", async () => {
      const now = await row.locator("td").nth(3).textContent();
      return now !== epoch && now !== "–";
    });
    await row.getByText("after 1 other").waitFor();
    await row.getByRole("link", { name: /diary-3/ }).click();
    await page.getByText("drained").first().waitFor();
    await stack.client.terminate("diary-3");
  });

  it("retries a dead letter, and the engine takes it", async () => {
    await stack.bus.publish("orchestrations.dead-1.start.hello", Buffer.from("{not json"));
    await page.goto(`${url}/queues`);
    const letter = page.locator(".letter", { hasText: "dead-1" });
    await letter.waitFor();
    await letter.getByText("Body and headers").click();
    await page.getByText("{not json").waitFor();
    await letter.getByRole("button", { name: "Retry" }).click();
    await page.getByText("Sent again to orchestrations.dead-1.start.hello").waitFor();
  });

  it("names a session type nobody serves, and why on the orchestration's own page", async () => {
    await stack.client.start("wants-rare", undefined, { id: "rare-1" });
    await page.goto(url);
    await page
      .getByText(/1 session of type rare waits, the oldest for \d+ s: no worker with tag h100/)
      .waitFor();
    await page.goto(`${url}/orchestrations/rare-1`);
    await page.getByText(/for a worker that serves rare: no worker with tag h100/).waitFor();
    await page
      .locator(".pending .remedy")
      .getByText(/WORKER_TAGS=h100 .*holdfast worker/)
      .waitFor();
    await page.getByRole("button", { name: "Terminate…" }).click();
    await page.getByRole("button", { name: "Terminate it" }).click();
    await page.getByText("terminated").first().waitFor();
  });

  it("shows latencies measured in other processes", async () => {
    await stack.client.start("hello", { name: "pulse" });
    await page.goto(url);
    const row = page.locator("tr", { hasText: "Schedule to start" });
    await until("a latency", async () => /\d ms/.test((await row.textContent()) ?? ""));
  });
});
