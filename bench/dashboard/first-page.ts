/**
 * How long until a page is usable: from opening the address in a fresh browser to the moment when the page's
 * main content (figures, rows, timeline) is drawn, by the page's own clock.
 */
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../test/support/gateway/browser.ts";
import { percentile } from "../stats.ts";

interface PageSpec {
  name: string;
  path: string;
  /** Selector of an element that is there once the page can be used. */
  usable: string;
}

export async function firstPages(gateway: string, pages: readonly PageSpec[], loads: number) {
  const browser = await launchBrowser();
  try {
    await load(browser, gateway, pages[0] ?? { name: "", path: "/", usable: "main" }); // starts the browser's own parts
    const found = [];
    for (const page of pages) {
      const times: number[] = [];
      for (let index = 0; index < loads; index++) times.push(await load(browser, gateway, page));
      found.push({ page: page.name, loads, p50Ms: percentile(times, 0.5), maxMs: Math.max(...times) });
    }
    return found;
  } finally {
    await browser.close();
  }
}

/** A context of its own: nothing is cached. */
async function load(browser: Browser, gateway: string, { path, usable }: PageSpec): Promise<number> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.addInitScript(`
      window.usableAt = new Promise((resolve) => {
        new MutationObserver((_, observer) => {
          if (!document.querySelector(${JSON.stringify(usable)})) return;
          observer.disconnect();
          requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
        }).observe(document, { childList: true, subtree: true });
      });
    `);
    await page.goto(gateway + path);
    return await page.evaluate<number>("window.usableAt");
  } finally {
    await context.close();
  }
}
