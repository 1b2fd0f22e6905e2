/** Takes the pictures of the README from a running installation: `npm run screenshots` (after a build). */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../../test/support/browser.ts";
import { Stack, until } from "../../../test/support/stack.ts";

const app = fileURLToPath(new URL("./screenshots-app.ts", import.meta.url));
const target = fileURLToPath(new URL("../../../docs/images/", import.meta.url));

async function main(): Promise<void> {
  mkdirSync(target, { recursive: true });
  await using stack = await Stack.start({
    app,
    workers: 0,
    env: { WORKER_TAGS: "gpu", WORKER_RESOURCES: "vram=24", WORKER_REGISTER_EVERY: "500ms" },
  });
  for (const name of ["gpu-1", "gpu-2", "gpu-3"]) await stack.run("worker", { WORKER_NODE_ID: name });
  const gateway = await stack.run("gateway", { GATEWAY_PORT: "0" });
  const url = await until("the gateway's address", () => /"url":"(http[^"]+)"/.exec(gateway.log())?.[1]);
  const browser = await launchBrowser();
  try {
    await populate(stack);
    await shoot(browser, url, "overview", "/", "light");
    await shoot(browser, url, "orchestrations", "/orchestrations", "light");
    await shoot(browser, url, "orchestration", "/orchestrations/docs-2026-11", "light");
    await shoot(browser, url, "orchestration-dark", "/orchestrations/docs-2026-11", "dark");
    await shoot(browser, url, "sessions", "/sessions", "light");
    await shoot(browser, url, "workers", "/workers", "dark");
    await shoot(browser, url, "start", "/start?name=classify-docs", "light");
  } finally {
    await browser.close();
  }
}

/** Some work that ended, some that runs, and one session whose worker died in the middle of it. */
async function populate(stack: Stack): Promise<void> {
  const { client } = stack;
  const ended = Array.from({ length: 14 }, (_, i) =>
    i % 4 === 0
      ? client.start("nightly-report", { pages: 3 + i }, { id: `report-${i}` })
      : client.start("classify-docs", { docs: 2 + (i % 3) }, { id: `docs-${1000 + i * 37}` }),
  );
  for (const handle of await Promise.all(ended)) await client.waitForEnd(handle.instanceId, 60_000);
  await client.start("classify-docs", { docs: 200 }, { id: "docs-2026-11" });
  await client.start("classify-docs", { docs: 300 }, { id: "docs-archive" });
  const sessionId = await until("calls", async () => {
    const session = (await client.sessions.list({ instanceId: "docs-2026-11" }))[0];
    return session?.phase === "active" && session.sessionId;
  });
  const answered = async (atLeast: number) => {
    const events = await client.history("docs-2026-11");
    return events.filter(({ kind }) => kind === "activity.completed").length >= atLeast;
  };
  await until("some answers", () => answered(18));
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
  await until("more answers", () => answered(40));
}

async function shoot(
  browser: Browser,
  url: string,
  name: string,
  path: string,
  colorScheme: "light" | "dark",
): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme });
  await page.goto(url + path);
  await page.locator("main h1").waitFor();
  // Everything asked for has come once the network has been quiet; the live line stays open and does not count.
  await page.waitForTimeout(1_500);
  const file = join(target, `${name}.png`);
  await page.screenshot({ path: file });
  await page.close();
  process.stdout.write(`${file}\n`);
}

await main();
