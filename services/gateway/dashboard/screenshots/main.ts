/**
 * Takes the README's pictures from a running installation: `npm run screenshots`. `npm run screenshots --
 * --every <folder>` takes every page, light and dark, in desktop and phone size.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../../../test/support/gateway/browser.ts";
import { Stack, until } from "../../../../test/support/processes/stack.ts";
import { shootEveryPage } from "./every-page.ts";

const app = fileURLToPath(new URL("./app.ts", import.meta.url));
const target = fileURLToPath(new URL("../../../../docs/images/", import.meta.url));

async function main(): Promise<void> {
  mkdirSync(target, { recursive: true });
  await using stack = await Stack.start({
    app,
    workers: 0,
    env: {
      WORKER_TAGS: "gpu",
      WORKER_RESOURCES: "vram=24",
      WORKER_REGISTER_EVERY: "500ms",
      WORKER_MAX_SESSIONS: "8",
      WORKER_ACTIVITY_SLOTS: "16",
      WORKER_BUILD_ID: "2026-11-16",
    },
  });
  for (const name of ["gpu-1", "gpu-2", "gpu-3"]) await stack.run("worker", { WORKER_NODE_ID: name });
  const gateway = await stack.run("gateway", { GATEWAY_PORT: "0" });
  const url = await until("the gateway's address", () => /"url":"(http[^"]+)"/.exec(gateway.log())?.[1]);
  const browser = await launchBrowser();
  const traffic = new AbortController();
  const going = keepBusy(stack, traffic.signal);
  try {
    await populate(stack);
    await shoot(browser, url, "orchestration", `/orchestrations/${watched}`, "light");
    await shoot(browser, url, "orchestration-dark", `/orchestrations/${watched}`, "dark");
    await shoot(browser, url, "overview", "/", "light");
    await shoot(browser, url, "sessions", "/sessions", "light");
    await shoot(browser, url, "workers", "/workers", "dark");
    await shoot(browser, url, "orchestrations", "/orchestrations", "light");
    await shoot(browser, url, "start", "/start?name=classify-docs", "light");
  } finally {
    traffic.abort();
    await going;
    await browser.close();
  }
}

const watched = "docs-2026-11";

/** An orchestration ends every second or so, and now and then one fails, so that the rates have a shape. */
async function keepBusy({ client }: Stack, signal: AbortSignal): Promise<void> {
  for (let i = 0; !signal.aborted; i++) {
    const burst = 1 + (Math.floor(i / 8) % 3);
    for (let n = 0; n < burst; n++) {
      if (i % 5 === 4)
        await client.start("nightly-report", { pages: i % 10 === 4 ? 5 : 3 }, { id: `report-${i}-${n}` });
      else await client.start("classify-docs", { docs: 1 + (i % 3) }, { id: `docs-${1000 + i * 37 + n}` });
    }
    await new Promise((resolve) => setTimeout(resolve, 1_100));
  }
}

/** One orchestration whose session's worker dies in the middle, beside others that run. */
async function populate(stack: Stack): Promise<void> {
  const { client } = stack;
  await client.start("classify-docs", { docs: 500 }, { id: "docs-archive" });
  await client.start("classify-docs", { docs: 1, approve: true }, { id: "docs-approval" });
  await until("a minute of traffic", async () => (await client.list({ limit: 200 })).length > 45, 180_000);
  await client.start("classify-docs", { docs: 400 }, { id: watched });
  const sessionId = await until("its session", async () => {
    const session = (await client.sessions.list({ instanceId: watched }))[0];
    return session?.phase === "active" && session.sessionId;
  });
  const answered = async (atLeast: number) => {
    const events = await client.history(watched);
    return events.filter(({ kind }) => kind === "activity.completed").length >= atLeast;
  };
  await until("some answers", () => answered(14));
  await client.signal(watched, "hurry", { by: "ada" });
  await until("more of them", () => answered(22));
  const { record } = await client.sessions.describe(sessionId);
  const holder = (await client.workers.list()).find(({ workerId }) => workerId === record.workerId);
  stack
    .of("worker")
    .find(({ pid }) => pid === holder?.pid)
    ?.kill("SIGKILL");
  await until("another holder", async () => {
    const { record: now } = await client.sessions.describe(sessionId);
    return now.phase === "active" && now.epoch !== record.epoch;
  });
  await stack.run("worker", { WORKER_NODE_ID: "gpu-4" });
  await until("answers of the other", () => answered(55), 60_000);
}

async function shoot(
  browser: Browser,
  url: string,
  name: string,
  path: string,
  colorScheme: "light" | "dark",
): Promise<void> {
  const page = await browser.newPage({
    viewport: { width: 1200, height: 760 },
    deviceScaleFactor: 1.5,
    colorScheme,
  });
  await page.goto(url + path);
  await page.locator("main h1").waitFor();
  // Every response has arrived once the network is quiet; the live connection stays open and does not count.
  await page.waitForTimeout(1_500);
  const file = join(target, `${name}.png`);
  await page.screenshot({ path: file });
  await page.close();
  process.stdout.write(`${file}\n`);
}

const [flag, folder] = process.argv.slice(2);
if (flag === "--every") await shootEveryPage(folder ?? "test-results/screenshots");
else await main();
