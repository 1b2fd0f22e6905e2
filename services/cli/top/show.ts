import { maskUrl, sleep, systemClock } from "../../../shared/runtime/index.ts";
import type { CliConnection } from "../connection/client-command.ts";
import { LiveRegion } from "../terminal/live-region.ts";
import { topScreen } from "./screen.ts";
import { TopWatcher } from "./watcher.ts";

interface TopOptions {
  every: number;
  count?: number | undefined;
  signal: AbortSignal;
}

export async function showTop(
  connection: CliConnection,
  { every, count, signal }: TopOptions,
): Promise<"over" | "interrupted"> {
  const { out, config } = connection;
  const region = !out.json && out.stdout.isTTY === true ? new LiveRegion(out.stdout) : undefined;
  const title = `holdfast top  ${maskUrl(config.nats.url ?? "")}`;
  const most = count ?? (region || out.format === "jsonl" ? Number.POSITIVE_INFINITY : 1);
  const watcher = new TopWatcher(connection);
  await watcher.start();
  try {
    for (let shown = 0; shown < most; shown++) {
      // The first sample comes after one interval: there are no rates before.
      if ((await sleep(systemClock, every, signal)) === "aborted") return "interrupted";
      const sample = await watcher.sample();
      if (region) {
        const { columns, rows } = region;
        region.draw(topScreen(sample, { paint: out.paint, columns, rows, title }));
      } else out.data(sample, () => topScreen(sample, { paint: out.paint, title }));
    }
    return "over";
  } finally {
    await watcher.stop();
  }
}
