/**
 * Takes a picture of every page, light and dark, in desktop and phone size, over the demo data of the tests.
 * `npm run screenshots -- --every <folder>`.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../../../test/support/browser.ts";
import { demoWorld } from "../../../../test/support/demo-world.ts";
import { startGateway } from "../../../../test/support/gateway.ts";
import { startNats } from "../../../../test/support/nats-server.ts";

const screens = {
  desk: { width: 1280, height: 800 },
  phone: { width: 390, height: 800 },
} as const;

/** Every path of app.tsx; a path with an id shows an object of the demo data. */
export const pages: readonly (readonly [name: string, path: string])[] = [
  ["overview", "/"],
  ["orchestrations", "/orchestrations"],
  ["orchestration", "/orchestrations/docs-live"],
  ["orchestration-failed", "/orchestrations?status=failed"],
  ["sessions", "/sessions"],
  ["session", "/sessions/docs-live-s1"],
  ["workers", "/workers"],
  ["schedules", "/schedules"],
  ["limits", "/limits"],
  ["queues", "/queues"],
  ["start", "/start"],
  ["import", "/import"],
  ["nothing-here", "/nothing-here"],
];

export async function shootEveryPage(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const nats = await startNats();
  const gateway = await startGateway(nats.url);
  const browser = await launchBrowser();
  try {
    await demoWorld(gateway);
    for (const [name, path] of pages)
      for (const [screen, viewport] of Object.entries(screens))
        for (const colorScheme of ["light", "dark"] as const)
          await shoot(browser, gateway.url + path, join(folder, `${name}-${screen}-${colorScheme}.png`), {
            viewport,
            colorScheme,
          });
  } finally {
    await browser.close();
    await gateway.stop();
    await nats.stop();
  }
}

async function shoot(
  browser: Browser,
  url: string,
  file: string,
  look: { viewport: { width: number; height: number }; colorScheme: "light" | "dark" },
): Promise<void> {
  const page = await browser.newPage(look);
  await page.goto(url);
  await page.locator("main h1, main .empty-title").first().waitFor();
  // Every response has arrived; the live connection stays open and does not count.
  await page.waitForTimeout(700);
  await page.screenshot({ path: file, fullPage: true });
  await page.close();
  process.stdout.write(`${file}\n`);
}
