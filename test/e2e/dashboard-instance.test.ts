/** The page of one orchestration, and starting it again. */
import { mkdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { browserPath } from "../support/gateway/browser.ts";
import { openDashboard } from "../support/gateway/dashboard.ts";
import { eventually, names, writeHistory } from "../support/gateway/gateway.ts";

const retry = { maxAttempts: 2, initialDelayMs: 100, maxDelayMs: 1000, factor: 2, nonRetryable: [] };
const declined = {
  code: "declined",
  message: "card declined",
  retryable: true,
  stack: "Error: card declined\n    at charge (/shop/app.ts:7:3)\n    at run (node:internal/timers:1:1)",
};

describe.skipIf(browserPath() === undefined)("the page of an orchestration", () => {
  const dashboard = openDashboard();
  const { inPage, see } = dashboard;

  it("says which step failed, with input, attempts and the user's own frames, and starts it again", async () => {
    const { gateway, page, put } = dashboard;
    const at = Date.now() - 5_000;
    await put.instance({
      instanceId: "unpaid",
      name: "checkout",
      status: "failed",
      input: { json: { cart: 3 } },
      error: declined,
      events: 99,
      startedAt: at,
      endedAt: at + 300,
    });
    await writeHistory(gateway.history, "unpaid", [
      {
        at,
        events: [
          { kind: "instance.started", name: "checkout", input: { json: { cart: 3 } } },
          {
            kind: "activity.scheduled",
            name: "charge",
            input: { json: { card: "4242" } },
            target: { kind: "queue", queue: "default" },
            retry,
            timeouts: {},
          },
        ],
      },
      {
        at: at + 100,
        events: [{ kind: "activity.attempt_failed", of: 2, attempt: 1, error: declined, retryAt: at + 200 }],
      },
      {
        at: at + 300,
        events: [
          { kind: "activity.failed", of: 2, error: declined },
          { kind: "instance.failed", error: declined },
        ],
      },
    ]);
    await page.goto(`${gateway.url}/orchestrations/unpaid`);
    await see("Failed at activity charge (event 2), 2 attempts");
    await see("How it ended");
    const text = (await page.locator("main").textContent()) ?? "";
    expect(text).toContain("4242");
    expect(text).not.toContain("Result so far");
    const stack = await page.locator('[aria-label="Stack"]').first().textContent();
    expect(stack).toContain("/shop/app.ts:7:3");
    expect(stack).not.toContain("node:internal");
    // As many as the list below shows, whatever the summary says.
    expect(await page.locator("dl.facts div", { hasText: "Events" }).first().textContent()).toContain("5");
    // From the top: how it stands, what was wrong with room above it, the step, and only then the rest.
    const box = async (selector: string) => {
      const found = await page.locator(selector).first().boundingBox();
      if (!found) throw new Error(`${selector} is not there`);
      return { top: found.y, bottom: found.y + found.height };
    };
    const [badge, error] = [await box("dl.facts .badge"), await box(".notice.error")];
    expect(error.top - badge.bottom).toBeGreaterThanOrEqual(8);
    const step = await box('h2:has-text("Failed at activity charge")');
    expect(step.top).toBeGreaterThan(error.bottom);
    expect(step.top).toBeLessThan((await box('h2:text-is("Timeline")')).top);
    expect(step.top).toBeLessThan((await box('h2:text-is("Input")')).top);
    const actions = page.getByRole("toolbar", { name: "Actions" });
    expect(await actions.getByRole("button", { name: "Cancel…" }).count()).toBe(0);
    if (process.env.SHOTS) {
      mkdirSync(process.env.SHOTS, { recursive: true });
      await page.screenshot({ path: `${process.env.SHOTS}/failed.png`, fullPage: true });
    }
    await actions.getByRole("button", { name: "Start again…" }).click();
    await page.getByRole("dialog").getByLabel("Id (optional").fill("paid");
    await page.getByRole("dialog").getByRole("button", { name: "Start again" }).click();
    await page.waitForURL(/\/orchestrations\/paid$/);
    const [sent] = (await gateway.bus.read(names.inboxStream, "inbox.*.paid.>")) ?? [];
    expect(JSON.parse(Buffer.from(sent?.body ?? []).toString())).toEqual({ cart: 3 });
  });

  it("starts many again, and offers no cancel for what has ended", async () => {
    const { gateway, page, put } = dashboard;
    for (let i = 0; i < 3; i++)
      await put.instance({
        ...{ instanceId: `over-${i}`, name: "over", status: "failed", input: { json: i } },
        ...{ startedAt: Date.now(), endedAt: Date.now() },
      });
    await page.goto(`${gateway.url}/orchestrations?prefix=over-`);
    await eventually(async () => (await page.locator("tbody tr").count()) === 3, "three rows");
    await page.getByLabel("Choose all on this page").check();
    const bar = page.getByRole("toolbar", { name: "Act on the chosen" });
    expect(await bar.getByRole("button", { name: "Cancel" }).count()).toBe(0);
    await bar.getByRole("button", { name: "Start again" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Start them again" }).click();
    await see("start-again: 3 of 3 done");
    expect(await gateway.bus.read(names.inboxStream, "inbox.*.*.start.over")).toHaveLength(3);
  });

  it("says why one is parked and what helps, not that it waits for a signal", async () => {
    const { gateway, page, put } = dashboard;
    const error = {
      code: "nondeterminism",
      message: "the code asks for b, the history has a",
      retryable: false,
    };
    await put.instance({ instanceId: "stuck", name: "checkout", status: "parked", error });
    await writeHistory(gateway.history, "stuck", [
      { at: Date.now(), events: [{ kind: "instance.started", name: "checkout", input: { json: null } }] },
    ]);
    await page.goto(`${gateway.url}/orchestrations/stuck`);
    await see("Parked: it cannot go on");
    await see(/What helps: deploy code that agrees with the history/);
    expect(await page.getByText("waits for a signal").count()).toBe(0);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/parked.png`, fullPage: true });
  });

  it("does not send a form whose JSON is not JSON", async () => {
    const { gateway, page } = dashboard;
    await page.goto(`${gateway.url}/start?name=classify-docs`);
    await page.getByRole("button", { name: "as JSON" }).click();
    await page.getByLabel("Id (optional").fill("half-typed");
    await page.getByLabel("Input as JSON").fill('{"docs": [');
    await page.getByRole("button", { name: "Start classify-docs" }).click();
    await see("This is not JSON yet.");
    expect(await gateway.bus.read(names.inboxStream, "inbox.*.half-typed.>")).toEqual([]);
  });

  it("shows a turn at once, though the summary does not change", async () => {
    const { gateway, page, put } = dashboard;
    await put.instance({ instanceId: "turning", name: "checkout", status: "running" });
    const written = await writeHistory(gateway.history, "turning", [
      { at: Date.now(), events: [{ kind: "instance.started", name: "checkout", input: { json: null } }] },
    ]);
    await page.goto(`${gateway.url}/orchestrations/turning`);
    await see("instance.started");
    const asked = page.waitForResponse((response) => response.url().includes("/history?after="), {
      timeout: 4_000,
    });
    await written.append([
      { at: Date.now(), events: [{ kind: "signal.received", name: "hurry-up", payload: { json: null } }] },
    ]);
    await asked;
    await see(/hurry-up/);
  });

  it("draws idle time short, says what is under the pointer, shows a child inside, and a strip of the whole", async () => {
    const { gateway, page, put } = dashboard;
    const hour = 3_600_000;
    const start = Date.now() - 2 * hour;
    const target = { kind: "queue" as const, queue: "default" };
    const step = { target, retry, timeouts: {}, input: { json: 7 } };
    const started = (name: string) => ({ kind: "instance.started" as const, name, input: { json: 1 } });
    await writeHistory(gateway.history, "inner", [
      { at: start, events: [started("inner"), { kind: "activity.scheduled", name: "deep", ...step }] },
      { at: start + 2_000, events: [{ kind: "activity.completed", of: 2, output: { json: 1 } }] },
    ]);
    await writeHistory(gateway.history, "outer", [
      {
        at: start,
        events: [
          started("outer"),
          {
            kind: "child.scheduled",
            name: "inner",
            childId: "inner",
            input: { json: 1 },
            mode: "attached",
            grants: [],
          },
          { kind: "activity.scheduled", name: "count", ...step },
        ],
      },
      {
        at: start + 4_000,
        events: [
          { kind: "activity.completed", of: 3, workerId: "worker-z", output: { json: 1 } },
          { kind: "child.completed", of: 2, output: { json: 1 } },
          { kind: "timer.created", fireAt: start + hour },
        ],
      },
      {
        at: start + hour,
        events: [
          { kind: "timer.fired", of: 6 },
          { kind: "instance.completed", output: { json: 1 } },
        ],
      },
    ]);
    const ended = { status: "completed", startedAt: start, endedAt: start + hour } as const;
    await put.instance({ instanceId: "inner", name: "inner", ...ended });
    await put.instance({ instanceId: "outer", name: "outer", ...ended });
    await page.goto(`${gateway.url}/orchestrations/outer`);
    await page.locator(".idle-gap").first().waitFor();
    const bar = page.locator('.bar.activity[data-event="3"] rect');
    const short = (await bar.boundingBox())?.width ?? 0;
    await bar.hover();
    const card = page.locator(".hover-card");
    await card.waitFor();
    expect(await card.textContent()).toMatch(
      /activity count.*completed.*took 4.0 s.*worker-z.*queue default/,
    );

    await page.getByRole("button", { name: "Idle time short" }).click();
    await eventually(async () => ((await bar.boundingBox())?.width ?? 0) < short / 10, "true to scale");
    await page.getByRole("button", { name: "Idle time short" }).click();

    await page.locator('.bar.child[data-event="2"] rect').click();
    await page.getByRole("region", { name: "Selected event" }).waitFor();
    await page.getByRole("button", { name: "Show its timeline here" }).click();
    await page.locator('[data-of="inner"] .bar.activity').waitFor();
    expect(await page.locator(".strip").count()).toBe(0);
    await page.getByRole("button", { name: "Zoom in" }).click();
    await page.locator(".strip .strip-window").waitFor();
    // Drawn text has no colour of its own: without one it is black on dark.
    const colours = await inPage<string[]>(
      "['.strip', '.timeline-svg'].map((svg) => getComputedStyle(document.querySelector(svg + ' .row-label')).fill)",
    );
    expect(colours[0]).toBe(colours[1]);
  });

  it("shows the life of one session, its calls and who ran them", async () => {
    const { gateway, page } = dashboard;
    await page.goto(`${gateway.url}/sessions/docs-live-s1`);
    await see("Calls (17)");
    await page.locator(".mark-lost").waitFor();
    const text = (await page.locator("main").textContent()) ?? "";
    expect(text).toContain("worker-a-k3x9");
    expect(text).toContain("Memory of its worker");
    expect(await page.locator(".bar.call").count()).toBeGreaterThan(10);
  });

  it("shows the life of a session whose record is gone, from the history of its orchestration", async () => {
    const { gateway, page, put } = dashboard;
    const on = { attachment: 1, epoch: 7, workerId: "worker-y", nodeId: "y", host: "h", resourceId: "r" };
    const sessionId = "former-s1";
    const options = {
      ...{ creationTimeoutMs: 1_000, onLost: "fail", maxAutoRetries: 0, maxInitAttempts: 1, lazy: false },
      ...{ requires: { tags: [], resources: {} }, metadata: {} },
    } as const;
    const target = { kind: "session" as const, sessionId, call: true as const };
    const start = Date.now() - 60_000;
    await writeHistory(gateway.history, "former", [
      {
        at: start,
        events: [
          { kind: "instance.started", name: "former", input: { json: 1 } },
          { kind: "session.opened", sessionId, type: "model", options },
          { kind: "session.requested", sessionId, attachment: 1, deadlineAt: start + 1_000, restore: false },
        ],
      },
      {
        at: start + 1_000,
        events: [
          { kind: "session.activated", sessionId, on, initMs: 5, warm: false, restored: false },
          { kind: "activity.scheduled", name: "ask", target, retry, timeouts: {}, input: { json: 7 } },
        ],
      },
      {
        at: start + 3_000,
        events: [
          { kind: "activity.completed", of: 5, workerId: "worker-y", epoch: 7, output: { json: 1 } },
          { kind: "session.closed", sessionId },
          { kind: "instance.completed", output: { json: 1 } },
        ],
      },
    ]);
    const ended = { status: "completed", startedAt: start, endedAt: start + 3_000 } as const;
    await put.instance({ instanceId: "former", name: "former", sessions: [sessionId], ...ended });
    await eventually(async () => (await gateway.get("/api/instances/former")).ok, "former");
    await page.goto(`${gateway.url}/sessions/${sessionId}`);
    await see("Calls (1)");
    await see("worker-y");
    await page.locator(".bar.call").waitFor();
  });

  it("counts on its filters, and folds them on a phone", async () => {
    const { gateway, page } = dashboard;
    await page.goto(`${gateway.url}/orchestrations`);
    await page.getByRole("button", { name: /^failed \d+$/ }).waitFor();
    await page.setViewportSize({ width: 390, height: 780 });
    await page.getByRole("button", { name: "Filters" }).waitFor();
    expect(await page.getByRole("button", { name: /^failed/ }).count()).toBe(0);
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByRole("button", { name: /^failed \d+$/ }).click();
    await see("Filters (1 set)");
    // Nothing is wider than the phone.
    expect(await dashboard.inPage<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
  });
});
