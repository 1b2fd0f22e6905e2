/** What `npm start` shows: one orchestration at work, and what to try next. */
import { connectBus, subjects } from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/index.ts";
import { type Environment, readConfig } from "../../config.ts";
import { connectionSettings } from "../../run-service.ts";
import type { Output } from "../output.ts";
import type { RunningDev } from "./run-dev.ts";

const steps = 20;
const stepMs = 100;

export async function runDemo(dev: RunningDev, env: Environment, out: Output): Promise<void> {
  const { config } = readConfig({ ...env, NATS_URL: dev.natsUrl }, "cli");
  const names = subjects(config.prefix);
  const bus = await connectBus({ ...connectionSettings(config, names, "holdfast-demo"), announce: silent });
  const client = new Client({ bus, names });
  try {
    const hello = await client.start("hello", { name: "world" });
    out.note(`\nhello {"name":"world"} → ${JSON.stringify(await hello.result())}`);
    const handle = await client.start("steps", { n: steps, ms: stepMs });
    out.note(`steps {"n":${steps}}: ${steps} activities, each remembered before the next is run`);
    await showProgress(client, handle.instanceId, out);
    out.note(`steps → ${JSON.stringify(await handle.result())}`);
    for (const line of next(handle.instanceId)) out.note(line);
  } finally {
    await client.close();
  }
}

async function showProgress(client: Client, instanceId: string, out: Output): Promise<void> {
  let shown = 0;
  for (let ended = false; !ended; ) {
    const view = await client.waitForEnd(instanceId, 3 * stepMs, undefined, true);
    ended = view?.endedAt !== undefined;
    const done = ended ? steps : await doneSteps(client, instanceId);
    if (done > shown) out.note(`  ${"#".repeat(done)}${".".repeat(steps - done)} ${done}/${steps}`);
    shown = done;
  }
}

async function doneSteps(client: Client, instanceId: string): Promise<number> {
  const events = await client.history(instanceId).catch(() => []); // not begun yet
  return events.filter((event) => event.kind === "activity.completed").length;
}

const next = (instanceId: string): string[] => [
  "\nTry in another terminal:",
  `  npx holdfast history ${instanceId}`,
  "  npx holdfast start fan-out --input '{\"n\":100}' --wait",
  "  npx holdfast start wait-for-signal --id waiting",
  "  npx holdfast signal waiting go '\"now\"' && npx holdfast result waiting",
  "  npx holdfast list",
  "  npx holdfast doctor",
  "Your own application: npx holdfast dev --app your-app.ts",
];
