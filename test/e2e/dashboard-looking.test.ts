/** What the dashboard shows, from the overview to one event, while it happens. */
import { describe, expect, it } from "vitest";
import { browserPath } from "../support/gateway/browser.ts";
import { openDashboard } from "../support/gateway/dashboard.ts";
import { longHistory, reclaimedHistory } from "../support/gateway/demo-world.ts";
import { eventually, hands, startGateway, writeHistory } from "../support/gateway/gateway.ts";
import { startServer } from "../support/nats/secured-nats.ts";

describe.skipIf(browserPath() === undefined)("the dashboard in a browser", () => {
  const dashboard = openDashboard();
  const { inPage, textOf, see } = dashboard;
  const ownersShown = () =>
    inPage<string[]>("[...document.querySelectorAll('.segment.held')].map((one) => one.dataset.owner)");

  it("shows what is wrong in words, and numbers", async () => {
    const { gateway, page } = dashboard;
    const began = performance.now();
    await page.goto(gateway.url);
    await see(
      /1 session of type whisper-large waits, the oldest for \d+ s: no worker serves session type whisper-large/,
    );
    const ms = performance.now() - began;
    await page.getByRole("link", { name: /running/ }).waitFor();
    console.log(`first page usable after ${Math.round(ms)} ms`);
  });

  it("shows each queue with what waits in it, and the latest failures", async () => {
    const { gateway, page } = dashboard;
    await page.goto(gateway.url);
    const queues = page.locator("section.card", { hasText: "Queues and storage" });
    for (const queue of ["INBOX", "ACTIVITIES", "CLAIMS", "SESSIONS"]) {
      await queues.getByRole("row", { name: new RegExp(`^${queue} [\\d,]+ [\\d,]+ `) }).waitFor();
    }
    const failures = page.locator("section.card", { hasText: "Latest failures" });
    expect(await failures.locator("tbody tr").count()).toBeGreaterThan(0);
    await failures.getByRole("link", { name: "All failed" }).click();
    expect(new URL(page.url()).search).toBe("?status=failed");
  });

  it("leads from a session that is gone to the orchestration it was of", async () => {
    const { gateway, page, put } = dashboard;
    await put.instance({ instanceId: "past", status: "completed", sessions: ["past-s1"] });
    await eventually(async () => (await gateway.get("/api/instances/past")).ok, "past");
    await page.goto(`${gateway.url}/sessions/past-s1`);
    await see("Its record is gone");
    await page.getByRole("link", { name: "past" }).click();
    expect(new URL(page.url()).pathname).toBe("/orchestrations/past");
    await page.goto(`${gateway.url}/sessions/never-s1`);
    await see("This session is not known here");
  });

  it("lists orchestrations live and keeps filters in the address", async () => {
    const { gateway, page, put } = dashboard;
    await page.goto(`${gateway.url}/orchestrations`);
    await page.getByRole("link", { name: "docs-live" }).waitFor();
    await put.instance({ instanceId: "came-later", name: "classify-docs" });
    await page.getByRole("link", { name: "came-later" }).waitFor();
    await page.getByRole("button", { name: "failed" }).click();
    await page.getByRole("link", { name: "came-later" }).waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("?status=failed");
    await page.reload();
    await page
      .getByRole("link", { name: /^(docs|report)-/ })
      .first()
      .waitFor();
    expect(await page.getByRole("link", { name: "came-later" }).count()).toBe(0);
    await page.goBack();
    await page.getByRole("link", { name: "came-later" }).waitFor();
  });

  it("shows the columns one asks for, and keeps them in the address", async () => {
    const { gateway, page, put } = dashboard;
    await put.instance({
      instanceId: "child-1",
      parent: { instanceId: "docs-live", execution: 1, of: 7 },
      updatedAt: Date.now() + 1_000,
    });
    await page.goto(`${gateway.url}/orchestrations?prefix=child-`);
    await page.getByRole("link", { name: "child-1" }).waitFor();
    await page.getByText("Columns", { exact: true }).click();
    await page.getByLabel("Parent").check();
    await page.getByLabel("Events").uncheck();
    await page.getByRole("cell", { name: "docs-live" }).waitFor();
    expect(await page.getByRole("columnheader", { name: "Events" }).count()).toBe(0);
    await page.reload();
    await page.getByRole("columnheader", { name: "Parent" }).waitFor();
    expect(new URL(page.url()).searchParams.get("columns")).toBe("name,status,started,took,parent,note");
  });

  it("pages back and to the latest", async () => {
    const { gateway, page } = dashboard;
    await page.goto(`${gateway.url}/orchestrations`);
    const first = page.locator("tbody tr").first();
    const latest = await first.textContent();
    await page.getByRole("button", { name: "Older" }).click();
    await eventually(async () => (await first.textContent()) !== latest, "another page");
    await page.getByRole("button", { name: "To the latest" }).click();
    await page.getByRole("link", { name: "docs-live" }).waitFor();
  });

  it("draws the session's bar with both owners, the loss and the reclaim, and follows new events", async () => {
    const { gateway, page } = dashboard;
    await page.goto(`${gateway.url}/orchestrations/docs-live`);
    const held = page.locator(".segment.held");
    await held.nth(1).waitFor();
    expect(await ownersShown()).toEqual(["worker-a-k3x9", "worker-b-p0q2"]);
    const colours = await inPage<string[]>(
      "[...document.querySelectorAll('.segment.held rect')].map((one) => getComputedStyle(one).fill)",
    );
    expect(new Set(colours).size).toBe(2);
    expect(await page.locator(".mark-lost").count()).toBe(1);
    expect(await page.locator(".mark-reclaimed").count()).toBe(1);
    await page.locator(".mark-lost").click({ force: true });
    await see("session.lost");
    expect(await page.getByRole("complementary").textContent()).toContain('"reason": "expired"');
  });

  it("shows an owner change while one looks", async () => {
    const { gateway, page, put } = dashboard;
    const start = Date.now();
    const turns = reclaimedHistory(start, "watched-s1");
    const cut = turns.findIndex((turn) => turn.events.some((event) => event.kind === "session.lost"));
    const continueHistory = await writeHistory(gateway.history, "watched", turns.slice(0, cut));
    await put.instance({ instanceId: "watched", name: "classify-docs", events: continueHistory.events });
    await page.goto(`${gateway.url}/orchestrations/watched`);
    await page.locator(".segment.held").first().waitFor();
    expect(await page.locator(".segment.held").count()).toBe(1);
    await continueHistory.append(turns.slice(cut));
    await put.instance({ instanceId: "watched", name: "classify-docs" });
    await page.locator('.segment.held[data-owner="worker-b-p0q2"]').waitFor();
    await page.locator(".mark-lost").waitFor();
  });

  it("opens a history of 10 000 events and stays smooth", async () => {
    const { gateway, page, put } = dashboard;
    const written = await writeHistory(gateway.history, "crawl-big", longHistory(Date.now() - 70_000, 5_000));
    await put.instance({
      instanceId: "crawl-big",
      name: "crawl",
      events: written.events,
      status: "completed",
      endedAt: Date.now(),
    });
    const began = performance.now();
    await page.goto(`${gateway.url}/orchestrations/crawl-big`);
    await see("History (10,001 events)");
    await page.locator(".bar").first().waitFor();
    const shownMs = performance.now() - began;
    const nodes = await inPage<number>("document.querySelectorAll('*').length");
    expect(nodes).toBeLessThan(20_000);
    expect(await page.locator(".event").count()).toBeLessThan(100);
    const { worst, most } = await inPage<{ worst: number; most: number }>(`(async () => {
      const list = document.querySelector(".history-list");
      let slowest = 0;
      let most = 0;
      for (let step = 0; step < 40; step++) {
        const from = performance.now();
        list.scrollTop += 7000;
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        slowest = Math.max(slowest, performance.now() - from);
        most = Math.max(most, document.querySelectorAll(".event").length);
      }
      return { worst: slowest, most };
    })()`);
    console.log(
      `10 001 events: shown after ${Math.round(shownMs)} ms, slowest scroll step ${Math.round(worst)} ms, ${nodes} nodes`,
    );
    expect(most, "rows drawn at a time while it is scrolled").toBeLessThan(100);
    await page.getByRole("button", { name: "JSON" }).click();
    await see('"kind": "instance.started",');
    expect(await page.locator(".json-line").count(), "lines drawn at a time").toBeLessThan(100);
  });

  it("shows a history from a file, offline", async () => {
    const { gateway, page } = dashboard;
    const file = await (await gateway.get("/api/instances/docs-live/history?download=true")).text();
    await page.goto(`${gateway.url}/import`);
    await page
      .getByLabel("History file")
      .setInputFiles({ name: "h.json", mimeType: "application/json", buffer: Buffer.from("nope") });
    await see("The file is not JSON.");
    await page
      .getByLabel("History file")
      .setInputFiles({ name: "h.json", mimeType: "application/json", buffer: Buffer.from(file) });
    await page.locator(".segment.held").nth(1).waitFor();
    await see("History (49 events)");
  });

  it("explains how to begin where nothing has run", async () => {
    const { browser } = dashboard;
    await using fresh = await startServer();
    const empty = await startGateway(fresh.url);
    try {
      const other = await browser.newPage();
      await other.goto(empty.url);
      await other.getByText("holdfast dev --app ./app.ts").waitFor();
      await hands(empty.bus).service({
        service: "orchestrator",
        id: "orchestrator-1",
        orchestrations: {
          greet: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
        },
      });
      await eventually(async () => {
        await other.reload();
        await other.locator("main h2").first().waitFor();
        return (await textOf(other)).includes("start.greet");
      }, "the orchestration somebody serves");
      await other
        .getByText(`nats pub --jetstream orchestrations.my-first.start.greet '{"who":"you"}'`)
        .waitFor();
      await other.close();
    } finally {
      await empty.stop();
    }
  });

  it("says so when NATS goes away, and goes on when it is back", async () => {
    const { browser } = dashboard;
    await using own = await startServer();
    const other = await startGateway(own.url);
    try {
      await hands(other.bus).instance({ instanceId: "kept" });
      const look = await browser.newPage();
      await look.goto(`${other.url}/orchestrations`);
      await look.getByRole("link", { name: "kept" }).waitFor();
      await own.kill();
      await look
        .getByRole("alert")
        .getByText(/NATS has been away/)
        .waitFor();
      expect(await look.getByRole("link", { name: "kept" }).count()).toBe(1);
      await own.restart();
      // The list says so too when it asked meanwhile; neither stays.
      await look.getByRole("alert").first().waitFor({ state: "detached", timeout: 20_000 });
      await hands(other.bus).instance({ instanceId: "new-again" });
      await look.getByRole("link", { name: "new-again" }).waitFor();
      await look.close();
    } finally {
      await other.stop();
    }
  });
});
