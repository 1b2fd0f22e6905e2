/** The dashboard's places for schedules, limits, pools, builds, keyed sessions and streams, before a running engine. */
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { conversation } from "../../services/gateway/dashboard/screenshots/busy-app.ts";
import { browserPath, launchBrowser } from "../support/gateway/browser.ts";
import { Stack, until } from "../support/processes/stack.ts";

/** The application of which the pictures are taken: it has one of each. */
const app = fileURLToPath(
  new URL("../../services/gateway/dashboard/screenshots/busy-app.ts", import.meta.url),
);

describe.skipIf(browserPath() === undefined)("the dashboard's places for what the engine can do", () => {
  let stack: Stack;
  let browser: Browser;
  let page: Page;
  let url: string;

  beforeAll(async () => {
    stack = await Stack.start({ app, workers: 0, env: { WORKER_REGISTER_EVERY: "500ms" } });
    await stack.run("worker", { WORKER_NODE_ID: "old-1", WORKER_BUILD_ID: "2026-11-16" });
    await stack.run("worker", { WORKER_NODE_ID: "new-1", WORKER_BUILD_ID: "2026-11-18" });
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
    page.setDefaultTimeout(20_000);
  });

  const confirmOpen = async (button: string) => {
    await page.getByRole("dialog").getByRole("button", { name: button }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  const confirm = async (open: string, button: string) => {
    await page.locator("main").getByRole("button", { name: open }).click();
    await confirmOpen(button);
  };

  it("says which builds are alive, and how many workers run each", async () => {
    await page.goto(`${url}/workers`);
    await page.getByText("2026-11-16 · 1 worker").waitFor();
    await page.getByText("2026-11-18 · 1 worker").waitFor();
    await page.getByText(/A deployment is under way/).waitFor();
  });

  it("shows a schedule's times on the wall they are meant for, runs, pauses, resumes and deletes it", async () => {
    await stack.client.schedules.create("nightly", {
      ...{ orchestration: "import-file", input: 10, cron: "30 4 * * *", timeZone: "Europe/Berlin" },
    });
    await page.goto(`${url}/schedules`);
    await page.getByRole("link", { name: "nightly" }).click();
    await page.getByRole("heading", { name: "Schedule nightly" }).waitFor();
    const times = page.locator("section.card", { hasText: "Next times" });
    await times.getByText("Europe/Berlin").waitFor();
    const first = await times.locator("li .number").first().textContent();
    expect(first).toMatch(/04:30$/);
    await confirm("Run now…", "Run it");
    await page
      .locator("section.card", { hasText: "Latest runs" })
      .getByRole("link", { name: /^nightly-t/ })
      .waitFor();
    await page.getByRole("button", { name: "Pause…" }).click();
    await page.getByLabel("Note (optional)").fill("the upstream is being moved");
    await confirmOpen("Pause it");
    await page.getByText("the upstream is being moved").waitFor();
    await times.getByText("None is to come.").waitFor();
    await confirm("Resume…", "Resume it");
    await times.locator("li").first().waitFor();
    await confirm("Delete…", "Delete it");
    await page.getByText("finished").waitFor();
    expect(await page.getByRole("button", { name: "Run now…" }).count()).toBe(0);
  });

  it("follows the starts that wait for a key, until none waits", async () => {
    const flow = { key: "customer-7", concurrency: 1 };
    const ids = ["import-1", "import-2", "import-3", "import-4"];
    for (const id of ids) await stack.client.start("import-file", 3_600_000, { id, flow });
    await page.goto(`${url}/limits`);
    const row = page.getByRole("row", { name: /customer-7/ });
    await row.getByText("3", { exact: true }).waitFor();
    for (const id of ids.toReversed()) await stack.client.terminate(id);
    await row.waitFor({ state: "detached" });
  });

  it("resizes, pauses and resumes a pool, and says what is wrong with a size", async () => {
    await page.goto(`${url}/sessions`);
    const row = page.getByRole("region", { name: "Pools" }).getByRole("row", { name: /translator-/ });
    await row.getByText("2–4").waitFor();
    await row.getByRole("button", { name: "Resize…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("At most").fill("many");
    await dialog.getByRole("button", { name: "Resize it" }).click();
    await dialog.getByRole("alert").getByText("many is not a whole number").waitFor();
    await dialog.getByLabel("At most").fill("1");
    await dialog.getByRole("button", { name: "Resize it" }).click();
    await dialog
      .getByRole("alert")
      .getByText(/min.*max|max.*min/)
      .waitFor();
    await dialog.getByLabel("At most").fill("3");
    await dialog.getByText(/holdfast pools resize translator-\S+ --min 2 --max 3/).waitFor();
    await dialog.getByRole("button", { name: "Resize it" }).click();
    await row.getByText("2–3").waitFor();
    await row.getByRole("button", { name: "Pause…" }).click();
    await confirmOpen("Pause it");
    await row.getByText("paused").waitFor();
    await row.getByRole("button", { name: "Resume…" }).click();
    await confirmOpen("Resume it");
    await row.getByText("kept warm").waitFor();
  });

  it("finds the session of a key, shows its life and closes it for everybody", async () => {
    const chat = stack.client.session(conversation, { key: "ada" });
    for (const text of ["hello", "still there?"]) await chat.say(text);
    await page.goto(`${url}/sessions`);
    await page.getByRole("searchbox", { name: "Key" }).fill("ada");
    const row = page.getByRole("region", { name: "Sessions" }).getByRole("row", { name: /key ada/ });
    await row.getByRole("link").first().click();
    const facts = page.locator("dl.facts");
    await facts.getByText("ada", { exact: true }).waitFor();
    await until("its figures", async () => /Calls of this holder2/.test((await facts.textContent()) ?? ""));
    await page.locator("section.card", { hasText: "Who held it" }).getByText("holds it").waitFor();
    await confirm("Close…", "Close it");
    await facts.locator(".badge", { hasText: "closed" }).waitFor();
  });

  it("shows what work writes while it writes it, on its page and in the timeline's live end", async () => {
    await stack.client.start("essay", "anchors", { id: "essay-1" });
    await page.goto(`${url}/orchestrations/essay-1`);
    const written = page.getByRole("region", { name: "What the work has written" });
    await written.getByText(/An essay about anchors, word by word/).waitFor();
    const length = async () => (await written.textContent())?.length ?? 0;
    const before = await length();
    await until("more words", async () => (await length()) > before + 20);

    const follow = page.getByRole("button", { name: "Follow" });
    expect(await follow.getAttribute("aria-pressed")).toBe("true");
    await page.getByRole("button", { name: "Zoom in" }).click();
    expect(await follow.getAttribute("aria-pressed")).toBe("true");
    await page.getByRole("application").press("ArrowLeft");
    expect(await follow.getAttribute("aria-pressed")).toBe("false");
    await follow.click();
    expect(await follow.getAttribute("aria-pressed")).toBe("true");
    await stack.client.terminate("essay-1");
    await page.getByText("terminated").first().waitFor();
    await follow.waitFor({ state: "detached" });
  });
});
