/** Actions of the dashboard, and the roles that may use them. */
import { describe, expect, it } from "vitest";
import { browserPath } from "../support/gateway/browser.ts";
import { openDashboard } from "../support/gateway/dashboard.ts";
import { eventually, names, startGateway, writeHistory } from "../support/gateway/gateway.ts";

describe.skipIf(browserPath() === undefined)("the dashboard in a browser", () => {
  const dashboard = openDashboard();
  const { textOf, see } = dashboard;

  it("cancels many with progress", async () => {
    const { gateway, page, put } = dashboard;
    for (let i = 0; i < 5; i++) await put.instance({ instanceId: `bulk-${i}`, name: "bulk" });
    await page.goto(`${gateway.url}/orchestrations?prefix=bulk-`);
    await eventually(async () => (await page.locator("tbody tr").count()) === 5, "five rows");
    await page.getByLabel("Choose all on this page").check();
    await page.getByRole("toolbar").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel them" }).click();
    await see("cancel: 5 of 5 done");
    const sent = await gateway.bus.read(names.inboxStream, "inbox.*.*.cancel");
    expect(sent?.filter(({ subject }) => subject.includes(".bulk-"))).toHaveLength(5);
  });

  it("signals with a payload", async () => {
    const { gateway, page, put } = dashboard;
    await put.instance({ instanceId: "to-signal", name: "approval" });
    await writeHistory(gateway.history, "to-signal", [
      { at: Date.now(), events: [{ kind: "instance.started", name: "approval", input: { json: null } }] },
    ]);
    await page.goto(`${gateway.url}/orchestrations/to-signal`);
    await page.getByRole("button", { name: "Signal…" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("approve");
    await page.getByLabel("Payload (JSON)").fill("{oops");
    await page.getByRole("button", { name: "Send" }).click();
    await see(/The payload is not JSON/);
    await page.getByLabel("Payload (JSON)").fill('{"by":"ada"}');
    await see('nats pub --jetstream orchestrations.to-signal.signal.approve \'{"by":"ada"}\'');
    await page.getByRole("button", { name: "Send" }).click();
    await see("Signal sent");
    expect(await gateway.bus.read(names.inboxStream, "inbox.*.to-signal.signal.approve")).toHaveLength(1);
  });

  it("asks a question and sends an update, and shows what comes back", async () => {
    const { gateway, page, put } = dashboard;
    const said = (body: object) => Buffer.from(JSON.stringify(body));
    await put.instance({ instanceId: "to-ask", name: "cart" });
    await writeHistory(gateway.history, "to-ask", [
      { at: Date.now(), events: [{ kind: "instance.started", name: "cart", input: { json: null } }] },
    ]);
    const asked = await gateway.bus.subscribe("query.to-ask.*", {}, ({ subject, reply }) => {
      const message = 'instance to-ask answers no query "nope"; there is: contents';
      reply?.(
        subject.endsWith(".contents")
          ? said({ ok: true, answer: ["a pen"] })
          : said({ ok: false, error: { code: "unknown_query", message } }),
      );
    });
    const updated = await gateway.bus.subscribe("orchestrations.to-ask.update.add", {}, ({ headers }) => {
      const updateId = headers["Holdfast-Update-Id"] ?? "";
      const answer = { json: "two pens" };
      gateway.bus.send(
        names.answer("to-ask", updateId),
        said({ v: 1, updateId, status: "completed", answer }),
      );
    });
    await page.goto(`${gateway.url}/orchestrations/to-ask`);
    await page.getByRole("button", { name: "Query…" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("nope");
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await see(/there is: contents/);
    await page.getByRole("textbox", { name: "Name" }).fill("contents");
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await see(/a pen/);
    await page.goto(`${gateway.url}/orchestrations/to-ask`);
    await page.getByRole("button", { name: "Update…" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("add");
    await page.getByRole("button", { name: "Send" }).click();
    await see(/two pens/);
    await asked.stop();
    await updated.stop();
  });

  it("shows a lease that is renewed, explains and evicts its session", async () => {
    const { gateway, page, put } = dashboard;
    await page.goto(`${gateway.url}/sessions`);
    const lease = page.locator("tr", { hasText: "docs-7f3a-s1" }).locator(".lease");
    const before = await lease.getAttribute("data-renewed");
    await put.lease("docs-7f3a-s1", 1, "worker-a-k3x9");
    await eventually(async () => (await lease.getAttribute("data-renewed")) !== before, "the renewal");
    await page.getByRole("link", { name: "docs-7f3a-s1" }).click();
    await see(/held by worker-a-k3x9 \(epoch 118\)/);
    await page.getByRole("button", { name: "Evict…" }).click();
    await page.getByRole("button", { name: "Evict it" }).click();
    await see("Told its holder to give it up");
    const work = await gateway.bus.read(
      names.sessionsStream,
      names.sessionWork("worker-a-k3x9", "docs-7f3a-s1"),
    );
    expect(work).toHaveLength(1);
  });

  it("shows workers, and drains one", async () => {
    const { gateway, page } = dashboard;
    const heard: string[] = [];
    const listening = await gateway.bus.subscribe(names.workerControl("worker-a-k3x9"), {}, (message) => {
      heard.push(Buffer.from(message.body).toString());
      message.reply?.(Buffer.from('{"ok":true}'));
    });
    await page.goto(`${gateway.url}/workers`);
    await see("worker-c-99ab");
    await page
      .locator(".worker", { hasText: "worker-a-k3x9" })
      .getByRole("button", { name: "Drain…" })
      .click();
    await page.getByRole("button", { name: "Drain it" }).click();
    await see("It is draining");
    expect(heard).toEqual(['{"kind":"drain"}']);
    await listening.stop();
  });

  it("retries a dead letter and discards another", async () => {
    const { gateway, page, put } = dashboard;
    await put.dead({ what: "inbox", id: "again", subject: "inbox.1.again.signal.go", body: "{}" });
    await put.dead({ what: "inbox", id: "away", subject: "inbox.1.away.signal.go", body: "{}" });
    await page.goto(`${gateway.url}/queues`);
    await page.locator(".letter", { hasText: "again" }).getByRole("button", { name: "Retry" }).click();
    await see("Sent again to orchestrations.again.signal.go");
    await page.locator(".letter", { hasText: "again" }).waitFor({ state: "detached" });
    expect(await gateway.bus.read(names.inboxStream, "inbox.*.again.signal.go")).toHaveLength(1);
    await page.locator(".letter", { hasText: "away" }).getByRole("button", { name: "Discard…" }).click();
    await page.getByRole("button", { name: "Discard it" }).click();
    await page.locator(".letter", { hasText: "away" }).waitFor({ state: "detached" });
  });

  it("starts one from the form made of its schema", async () => {
    const { gateway, page } = dashboard;
    await page.goto(`${gateway.url}/start?name=classify-docs`);
    await page.getByLabel("Id (optional").fill("from-the-form");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("textbox", { name: "docs 1" }).fill("it's fine");
    await page.getByRole("combobox", { name: "model" }).selectOption({ label: "distil-roberta" });
    await page.getByRole("spinbutton", { name: "threshold" }).fill("0.5");
    await see(/nats pub --jetstream orchestrations\.from-the-form\.start\.classify-docs/);
    await page.getByRole("button", { name: "Start classify-docs" }).click();
    await page.waitForURL(/\/orchestrations\/from-the-form$/);
    await see("pending");
    const [sent] = (await gateway.bus.read(names.inboxStream, "inbox.*.from-the-form.>")) ?? [];
    expect(JSON.parse(Buffer.from(sent?.body ?? []).toString())).toEqual({
      docs: ["it's fine"],
      model: "distil-roberta",
      threshold: 0.5,
    });
  });

  it("hides every action in read-only mode and for viewers", async () => {
    const { nats, browser } = dashboard;
    const token = "viewer-token-0123456789abcdef";
    const readOnly = await startGateway(nats.url, { readOnly: true });
    const viewed = await startGateway(nats.url, { tokens: [{ role: "viewer", name: "vera", token }] });
    try {
      for (const other of [readOnly, viewed]) {
        const look = await browser.newPage();
        await look.goto(other === viewed ? `${other.url}/#token=${token}` : other.url);
        await look.getByRole("heading", { name: "Overview" }).waitFor();
        expect(new URL(look.url()).hash).toBe("");
        for (const address of [
          "/orchestrations/docs-live",
          "/sessions",
          "/workers",
          "/queues",
          "/orchestrations",
        ]) {
          await look.goto(other.url + address);
          await look.locator("main h1").waitFor();
          await eventually(async () => (await textOf(look)).length > 60, address);
          const actions = look.getByRole("button", {
            name: /Cancel|Terminate|Signal|Evict|Drain|Retry|Discard/,
          });
          expect(await actions.count()).toBe(0);
          expect(await look.getByRole("checkbox").count()).toBe(0);
        }
        await look.goto(`${other.url}/start`);
        await look.getByText("You may look, not act").waitFor();
        await look.close();
      }
    } finally {
      await readOnly.stop();
      await viewed.stop();
    }
  });

  it("asks for a token where one is needed, and takes it", async () => {
    const { nats, browser } = dashboard;
    const token = "operator-token-0123456789abcdef";
    const guarded = await startGateway(nats.url, { tokens: [{ role: "operator", name: "otto", token }] });
    try {
      const look = await browser.newPage();
      await look.goto(`${guarded.url}/workers`);
      await look.getByLabel("Token").fill("wrong-token-0123456789abcdef");
      await look.getByRole("button", { name: "Log in" }).click();
      await look.getByText("The token is not known").waitFor();
      await look.getByLabel("Token").fill(token);
      await look.getByRole("button", { name: "Log in" }).click();
      await look.getByText("otto (operator)").waitFor();
      await look.getByRole("heading", { name: "Workers" }).waitFor();
      expect(await look.evaluate("document.cookie")).toBe("");
      await look.close();
    } finally {
      await guarded.stop();
    }
  });
});
