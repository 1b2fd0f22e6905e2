/**
 * A real browser for the dashboard's tests: one that is on the machine. Under CI, where a package manager is at hand, it
 * is installed; otherwise the tests are skipped and say loudly what to do.
 */
import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const names = [
  "chromium",
  "chromium-browser",
  "google-chrome-stable",
  "google-chrome",
  "microsoft-edge-stable",
];
const installLine = "apt-get update && apt-get install -y chromium";

let found: string | undefined | null = null;

/** Undefined where there is none. Looks once. */
export function browserPath(): string | undefined {
  if (found !== null) return found;
  found = process.env.CHROMIUM_PATH ?? onPath(names);
  if (found === undefined && process.env.CI && onPath(["apt-get"])) {
    console.warn(`no browser on this machine, installing one: ${installLine}`);
    try {
      execFileSync("sh", ["-c", installLine], { stdio: "ignore", timeout: 600_000 });
      found = onPath(names);
    } catch (error) {
      console.warn(`installing a browser failed: ${String(error)}`);
    }
  }
  if (found === undefined) {
    console.warn(
      `\nSKIPPED: the dashboard's tests need a browser and there is none. Install one:\n  ${installLine}\n`,
    );
  }
  return found;
}

export function launchBrowser(): Promise<Browser> {
  const executablePath = browserPath();
  if (executablePath === undefined) throw new Error(`no browser: ${installLine}`);
  return chromium.launch({
    executablePath,
    headless: true,
    // Containers have no user namespace for the sandbox and a small /dev/shm.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  });
}

function onPath(candidates: readonly string[]): string | undefined {
  for (const dir of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of candidates) {
      const path = join(dir, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // not this one
      }
    }
  }
  return undefined;
}
