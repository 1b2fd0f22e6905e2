/**
 * The dashboard over the demo world in a real browser, for all tests of a `describe`; each test has a page of its own,
 * which must not complain. Call it where the tests are; what it gives is there while a test runs.
 */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { messagesQuery } from "../../../schemas/index.ts";
import type { TestNats } from "../nats/nats-server.ts";
import { startServer } from "../nats/secured-nats.ts";
import { launchBrowser } from "./browser.ts";
import { demoWorld } from "./demo-world.ts";
import { hands, startGateway, type TestGateway } from "./gateway.ts";

export function openDashboard() {
  let nats: TestNats;
  let gateway: TestGateway;
  let put: ReturnType<typeof hands>;
  let browser: Browser;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    nats = await startServer();
    gateway = await startGateway(nats.url);
    put = hands(gateway.bus);
    await demoWorld(gateway);
    // No orchestrator owns the instances of the demo world; the dashboard asks what they take.
    const answer = { queries: [], updates: [], signals: [] };
    await gateway.bus.subscribe(`query.*.${messagesQuery}`, {}, ({ reply }) => {
      reply?.(Buffer.from(JSON.stringify({ ok: true, answer })));
    });
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
    await nats?.stop();
  });
  beforeEach(async () => {
    complaints = [];
    page = await browser.newPage();
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      // The browser's own line for an instance that has no history yet.
      if (message.type() === "error" && !message.text().includes("404")) complaints.push(message.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(gateway.url)) complaints.push(`asked elsewhere: ${request.url()}`);
    });
  });
  afterEach(async () => {
    await page.close();
    expect(complaints).toEqual([]);
  });

  return {
    get nats() {
      return nats;
    },
    get gateway() {
      return gateway;
    },
    get put() {
      return put;
    },
    get browser() {
      return browser;
    },
    get page() {
      return page;
    },
    /** The page's own world is not ours: what runs there is text here. */
    inPage: <T>(script: string): Promise<T> => page.evaluate<T>(script),
    textOf: async (on: Page): Promise<string> => (await on.locator("main").textContent()) ?? "",
    see: (text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor(),
  };
}
