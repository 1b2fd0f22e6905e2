/**
 * `npm run bench:dashboard [-- --quick] [-- --pages | --engine]`: how fast pages load, and what open pages
 * cost the engine. Prints one JSON line per measurement.
 */
import { pickFreePort } from "../../shared/embedded-nats/free-port.ts";
import { browserPath } from "../../test/support/gateway/browser.ts";
import { Rig } from "../rig.ts";
import { shortInstances } from "../workloads/w3-instances.ts";
import { firstPages } from "./first-page.ts";
import { watchedEngine } from "./watched-engine.ts";

const quick = process.argv.includes("--quick");

const print = (line: Record<string, unknown>) =>
  process.stdout.write(
    `${JSON.stringify(line, (_, value) => (typeof value === "number" ? Number(value.toFixed(3)) : value))}\n`,
  );

async function pageTimes(): Promise<void> {
  const port = await pickFreePort();
  const rig = await Rig.start(
    { json: false, quick, only: [], layout: "shared", sync: "default", cpuProf: undefined, help: false },
    { layout: "shared", env: { GATEWAY_PORT: String(port) } },
  );
  try {
    await shortInstances(rig.client, 2_000);
    await rig.client.start("steps", { n: 2_500 }, { id: "long" });
    await rig.client.waitForEnd("long", 120_000);
    await rig.startService("gateway");
    const pages = [
      { name: "overview", path: "/", usable: ".tile" },
      { name: "list of 2 000 orchestrations", path: "/orchestrations", usable: "tbody tr" },
      { name: "one orchestration, 5 002 events", path: "/orchestrations/long", usable: ".timeline-svg .bar" },
      { name: "queues", path: "/queues", usable: "tbody tr" },
    ];
    for (const page of await firstPages(`http://127.0.0.1:${port}`, pages, quick ? 3 : 10)) print(page);
  } finally {
    await rig.stop();
  }
}

try {
  const only = process.argv.find((one) => one === "--pages" || one === "--engine");
  if (browserPath() !== undefined && only !== "--engine") await pageTimes();
  if (only !== "--pages") {
    print(await watchedEngine(quick ? { rounds: 3, instances: 500 } : { rounds: 9, instances: 1_000 }));
  }
} finally {
  await Rig.stopAll();
}
