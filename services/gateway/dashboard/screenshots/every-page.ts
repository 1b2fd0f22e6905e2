/**
 * Takes a picture of every page, light and dark, in desktop and phone size, of a running installation.
 * `npm run screenshots -- --every <folder>`.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../../../test/support/gateway/browser.ts";
import { busyWorld } from "./busy-world.ts";
import { pictures } from "./pictures.ts";

const screens = {
  desk: { width: 1280, height: 800 },
  phone: { width: 390, height: 800 },
} as const;

export async function shootEveryPage(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await using world = await busyWorld();
  const browser = await launchBrowser();
  try {
    for (const [name, path] of pictures(world))
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
