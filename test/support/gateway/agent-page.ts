import { serveAgentPage } from "../../../examples/agent/page.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import { launchBrowser } from "./browser.ts";

/** The page of examples/agent in a browser. */
export async function openAgentPage(client: Client) {
  const served = await serveAgentPage(client, "chat");
  const browser = await launchBrowser();
  const page = await browser.newPage();
  await page.goto(served.url);
  return {
    lines: async () => (await page.locator("#talk p").allTextContents()).map((line) => line.trim()),
    async [Symbol.asyncDispose]() {
      await browser.close();
      await served.close();
    },
  };
}
