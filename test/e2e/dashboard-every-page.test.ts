/** Rules for every page: title, heading, keyboard, contrast, phones, loading, and extreme data. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { type Pattern, routeOf, routes } from "../../services/gateway/dashboard/src/routes.ts";
import { browserPath } from "../support/gateway/browser.ts";
import { openDashboard } from "../support/gateway/dashboard.ts";
import { eventually, writeHistory } from "../support/gateway/gateway.ts";

/** Where each route is looked at; one that is not named here does not compile. */
const examples: Readonly<Record<Pattern, readonly string[]>> = {
  "/": ["/"],
  "/orchestrations": ["/orchestrations", "/orchestrations?status=failed&engine=true"],
  "/orchestrations/:id": ["/orchestrations/docs-live", "/orchestrations/not-there"],
  "/sessions": ["/sessions"],
  "/sessions/:id": ["/sessions/docs-live-s1", "/sessions/not-there"],
  "/workers": ["/workers"],
  "/workers/:id": ["/workers/worker-b-p0q2", "/workers/not-there"],
  "/schedules": ["/schedules"],
  "/schedules/:id": ["/schedules/nightly", "/schedules/not-there"],
  "/limits": ["/limits"],
  "/queues": ["/queues"],
  "/start": ["/start?name=classify-docs"],
  "/import": ["/import"],
};
const addresses = [...routes.flatMap(({ pattern }) => examples[pattern]), "/there-is-no-such-page"];

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe.skipIf(browserPath() === undefined)("the dashboard in a browser", () => {
  const dashboard = openDashboard();
  const { inPage, textOf, see } = dashboard;

  /** Nothing is being waited for any more. */
  const loaded = (address: string) => {
    const least = routeOf(address.split("?")[0] ?? "") ? 60 : 20;
    return eventually(
      async () =>
        (await textOf(dashboard.page)).length > least &&
        (await dashboard.page.locator("main .loading").count()) === 0,
      address,
    );
  };

  // First, so that the pages below are looked at with this in them too.
  it("shows markup in payloads as text, wherever it comes from", async () => {
    const { gateway, page, put } = dashboard;
    const nasty = '<script>window.hacked=1</script><img src=x onerror="window.hacked=1">';
    const start = Date.now();
    await writeHistory(gateway.history, "nasty", [
      { at: start, events: [{ kind: "instance.started", name: "demo", input: { json: nasty } }] },
      {
        at: start + 1,
        events: [{ kind: "signal.received", name: "x", payload: { json: { [nasty]: nasty } } }],
      },
    ]);
    await put.instance({
      instanceId: "nasty",
      status: "failed",
      input: { json: nasty },
      error: { code: "boom", message: nasty, retryable: false, stack: nasty },
      customStatus: { json: nasty },
    });
    await put.session({
      sessionId: "nasty-s",
      metadata: { note: nasty },
      phase: "failed",
      error: { code: "x", message: nasty, retryable: false },
    });
    await put.worker({ workerId: "nasty-w", host: nasty, tags: [nasty] });
    await put.dead({
      what: "inbox",
      id: "nasty",
      subject: "inbox.1.nasty.signal.go",
      body: nasty,
      message: nasty,
    });
    for (const address of [
      "/orchestrations/nasty",
      "/orchestrations",
      "/sessions/nasty-s",
      "/workers",
      "/queues",
      "/",
    ]) {
      await page.goto(gateway.url + address);
      await eventually(async () => (await textOf(page)).length > 20, address);
      if (address !== "/" && address !== "/queues") await see(/<script>window\.hacked=1/);
      expect(await inPage("'hacked' in window")).toBe(false);
      expect(await page.locator("main img[src=x], main script").count()).toBe(0);
    }
    await gateway.bus.purge("KV_workers", "$KV.workers.nasty-w", Number.MAX_SAFE_INTEGER);
  });

  it("filters and opens events by keyboard alone", async () => {
    const { gateway, page } = dashboard;
    await page.goto(`${gateway.url}/orchestrations/docs-live`);
    await page.locator(".event").first().waitFor();
    await page.getByRole("button", { name: /^session \d+$/ }).focus();
    await page.keyboard.press("Enter");
    await eventually(
      async () => !(await page.locator(".event-kind").allTextContents()).includes("activity.scheduled"),
      "only sessions",
    );
    await page.locator(".event").nth(0).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary").waitFor();
    expect(new URL(page.url()).search).toBe("?events=session");
  });

  it.each(["light", "dark"] as const)(
    "has no serious accessibility problem in %s",
    async (colorScheme) => {
      const { gateway, page } = dashboard;
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const address of addresses) {
        await page.goto(gateway.url + address);
        await page.locator("main h1").waitFor();
        await loaded(address);
        // The policy forbids inline scripts in the page; the test's own world is not the page.
        const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
        const serious = (
          found as {
            violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
          }
        ).violations
          .filter(({ impact }) => impact === "serious" || impact === "critical")
          .map(
            ({ id, nodes }) =>
              `${address} ${id}: ${nodes.map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`,
          );
        expect(serious).toEqual([]);
      }
    },
    240_000,
  );

  it("has a title of its own in the browser's tab, and one heading that says what it shows", async () => {
    const { gateway, page } = dashboard;
    const titles = new Set<string>();
    for (const address of addresses) {
      await page.goto(gateway.url + address);
      await page.locator("main h1").waitFor();
      const path = address.split("?")[0] ?? "";
      const expected = routeOf(path)?.title ?? "Not found · Holdfast";
      await eventually(async () => (await page.title()) === expected, `${address}: ${expected}`);
      titles.add(await page.title());
      expect(await page.locator("main h1").count(), address).toBe(1);
      const heading = (await page.locator("main h1").textContent()) ?? "";
      const id = routeOf(path)?.params.id;
      // Never an id alone.
      expect(heading.replace(id ?? "", "").trim(), address).toMatch(/^[A-Z][a-z]+/);
      if (id !== undefined) expect(heading, address).toContain(id);
    }
    expect(titles.size).toBe(new Set(addresses.map((address) => address.split("?")[0])).size);
    expect([...titles]).toContain("docs-live · Orchestration · Holdfast");
  });

  it("says that it is loading, instead of standing there empty", async () => {
    const { gateway, page } = dashboard;
    let answer: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const isData = (url: URL) => url.pathname.startsWith("/api/") && url.pathname !== "/api/whoami";
    await page.route(isData, async (route) => {
      await held;
      // Pages that were left do not wait any more.
      await route.continue().catch(() => undefined);
    });
    for (const address of addresses.filter((one) => !/import|no-such-page/.test(one))) {
      await page.goto(gateway.url + address);
      await page.locator("main h1").waitFor();
      await page.locator("main .loading").first().waitFor();
    }
    answer();
    await page.locator("main .loading").first().waitFor({ state: "detached" });
  });

  it("folds the menu on a phone, leads to every page from it, and folds it again", async () => {
    const { gateway, page } = dashboard;
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(gateway.url);
    const pages = page.getByRole("navigation", { name: "Pages" });
    await page.getByRole("button", { name: /^Menu/ }).waitFor();
    expect(await pages.count()).toBe(0);
    for (const name of ["Schedules", "Import", "Queues"]) {
      await page.getByRole("button", { name: /^Menu/ }).click();
      expect(await inPage<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
      await pages.getByRole("link", { name }).click();
      await page.waitForURL(new RegExp(`/${name.toLowerCase()}$`));
      await pages.waitFor({ state: "detached" });
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await pages.getByRole("link", { name: "Import" }).waitFor();
    expect(await page.getByRole("button", { name: /^Menu/ }).count()).toBe(0);
  });

  it("can be read on a phone: nothing is wider than the screen, no number is broken over lines", async () => {
    const { gateway, page } = dashboard;
    await page.setViewportSize({ width: 390, height: 800 });
    for (const address of addresses) {
      await page.goto(gateway.url + address);
      await page.locator("main h1").waitFor();
      await loaded(address);
      expect(await inPage<number>("document.documentElement.scrollWidth"), address).toBeLessThanOrEqual(390);
      // A table that scrolls sideways hides its right half from people who do not scroll.
      const cut = await inPage<string[]>(
        "[...document.querySelectorAll('main .table-wrap')].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)",
      );
      expect(cut, address).toEqual([]);
      const broken = await inPage<string[]>(
        "[...document.querySelectorAll('.meter .number')].filter((one) => one.getClientRects().length > 1 || one.offsetHeight > 30).map((one) => one.textContent)",
      );
      expect(broken, address).toEqual([]);
    }
  });
});
