/** What many looking pages cost: the figure of the issue, measured on the built gateway. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { encode } from "../../../shared/bus/index.ts";
import { Stack, until } from "../../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../support/apps/dashboard-app.ts", import.meta.url));
const pages = 20;
const perSecond = 1_000;
const seconds = 4;

let stack: Stack;
let url: string;
let pid: number;

beforeAll(async () => {
  stack = await Stack.start({ app, orchestrators: 0, workers: 0, watchers: 0 });
  const gateway = await stack.run("gateway", { GATEWAY_PORT: "0" });
  pid = gateway.pid;
  url = await until("the gateway's address", () => /"url":"(http[^"]+)"/.exec(gateway.log())?.[1]);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Milliseconds of processor time so far. */
function cpuMs(): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function publish(): Promise<{ share: number; sent: number }> {
  const began = performance.now();
  const before = cpuMs();
  let sent = 0;
  const startedAt = Date.now();
  while (performance.now() - began < seconds * 1000) {
    const due = Math.floor(((performance.now() - began) / 1000) * perSecond);
    for (; sent < due; sent++) {
      const instanceId = `load-${sent % 2000}`;
      const summary = {
        v: 1,
        instanceId,
        name: "load",
        status: sent % 3 === 0 ? "completed" : "running",
        execution: 1,
        events: sent % 100,
        startedAt,
        updatedAt: Date.now(),
      };
      void stack.bus.publish(`$KV.instances.${instanceId}`, encode(summary));
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await stack.bus.flush();
  return { share: (cpuMs() - before) / (performance.now() - began), sent };
}

it.skipIf(process.platform !== "linux")(
  `serves ${perSecond} updates a second to ${pages} pages for a small part of one core`,
  async () => {
    const alone = await publish();
    const hangUp = new AbortController();
    let bytes = 0;
    const open = Array.from({ length: pages }, async () => {
      const response = await fetch(`${url}/api/events?topics=instances,overview`, { signal: hangUp.signal });
      for await (const chunk of response.body ?? []) bytes += chunk.length;
    });
    await until("all pages are open", async () => {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      return metrics.includes(`holdfast_live_pages ${pages}`);
    });
    const watched = await publish();
    hangUp.abort();
    await Promise.allSettled(open);
    const percent = (share: number) => `${Math.round(share * 100)} %`;
    console.log(
      `${watched.sent} updates in ${seconds} s: gateway at ${percent(alone.share)} of a core alone, ` +
        `${percent(watched.share)} with ${pages} pages (${Math.round(bytes / 1024)} kB sent)`,
    );
    expect(bytes).toBeGreaterThan(pages * 10_000);
    expect(watched.share).toBeLessThan(0.5);
    expect(watched.share - alone.share).toBeLessThan(0.25);
  },
);
