/**
 * Takes a picture of every page, light and dark, in desktop and phone size, of a running installation.
 * `npm run screenshots -- --every <folder>`.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../../../test/support/gateway/browser.ts";
import { busyWorld } from "./busy-world.ts";

const screens = {
  desk: { width: 1280, height: 800 },
  phone: { width: 390, height: 800 },
} as const;

/** Every path of app.tsx, and every state in which a page says something else. */
const pages = (keyedSession: string): readonly (readonly [name: string, path: string])[] => [
  ["overview", "/"],
  ["orchestrations", "/orchestrations"],
  ["orchestrations-failed", "/orchestrations?status=failed"],
  ["orchestration", "/orchestrations/docs-2026-11"],
  ["orchestration-failed", "/orchestrations/checkout-77"],
  ["orchestration-parked", "/orchestrations/shipment-31"],
  ["orchestration-unserved", "/orchestrations/transcribe-8"],
  ["orchestration-streaming", "/orchestrations/essay-1"],
  ["orchestration-completed", "/orchestrations/docs-1000"],
  ["orchestration-signal", "/orchestrations/docs-approval"],
  ["orchestration-cart", "/orchestrations/cart-5"],
  ["sessions", "/sessions"],
  ["session", "/sessions/docs-2026-11-s1"],
  ["session-of-key", `/sessions/${keyedSession}`],
  ["workers", "/workers"],
  ["schedules", "/schedules"],
  ["schedule", "/schedules/nightly"],
  ["limits", "/limits"],
  ["queues", "/queues"],
  ["start", "/start?name=classify-docs"],
  ["import", "/import"],
  ["nothing-here", "/nothing-here"],
];

export async function shootEveryPage(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await using world = await busyWorld();
  const browser = await launchBrowser();
  try {
    for (const [name, path] of pages(world.keyedSession))
      for (const [screen, viewport] of Object.entries(screens))
        for (const colorScheme of ["light", "dark"] as const)
          await shoot(browser, world.url + path, join(folder, `${name}-${screen}-${colorScheme}.png`), {
            viewport,
            colorScheme,
          });
  } finally {
    await browser.close();
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
