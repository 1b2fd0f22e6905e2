/** F8: the gateway dies while it streams. Readers go on at another gateway where the first stopped. */
import { expect, test } from "vitest";
import { encode } from "../../shared/bus/index.ts";
import { derivedCapability } from "../../shared/capabilities/index.ts";
import { installation } from "../support/processes/installation.ts";
import type { ServiceProcess } from "../support/processes/stack.ts";

const world = installation({ app: "durable", orchestrators: 1, workers: 0, watchers: 0 });

const addressOf = (gateway: ServiceProcess): string =>
  /"url":"(http:[^"]+)"/.exec(gateway.log())?.[1]?.replace(/\/$/, "") ?? "";

function write(index: number) {
  const { bus, names, capabilities } = world.stack;
  const task = capabilities.ofTask({ instanceId: "streamed", execution: 1, of: 2, attempt: 1 });
  const capability = task && derivedCapability(task, "stream");
  const chunk = { v: 1, attempt: 1, run: 1, index, at: Date.now(), chunk: { json: `t${index}` }, capability };
  return bus.publish(names.stream("streamed", 1, 2), encode(chunk), { msgId: `chunk-${index}` });
}

/** Reads chunks until there are so many, or the line is dead. */
async function read(url: string, into: number[], upTo: number, lastId?: string): Promise<string | undefined> {
  const headers = {
    accept: "text/event-stream",
    ...(lastId === undefined ? {} : { "last-event-id": lastId }),
  };
  const hangUp = new AbortController();
  let id = lastId;
  let text = "";
  try {
    const response = await fetch(`${url}/api/instances/streamed/stream`, { headers, signal: hangUp.signal });
    for await (const bytes of response.body ?? []) {
      text += new TextDecoder().decode(bytes, { stream: true });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const [, at, data] = /^id: (\d+)\nevent: chunk\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
        text = text.slice(end + 2);
        if (at === undefined || data === undefined) continue;
        id = at;
        into.push((JSON.parse(data) as { index: number }).index);
        if (into.length >= upTo) return id;
      }
    }
  } catch {
    return id; // the line is dead
  } finally {
    hangUp.abort();
  }
  return id;
}

test("a reader goes on at the next gateway and misses nothing", async () => {
  await world.start("mixed", { n: 1 }, "streamed");
  const first = await world.stack.run("gateway", { GATEWAY_PORT: "0" });
  const indexes: number[] = [];
  for (let n = 0; n < 5; n++) await write(n);
  const reading = read(addressOf(first), indexes, 100);
  await expect.poll(() => indexes.length).toBe(5);
  first.kill("SIGKILL");
  await first.exited;
  const lastId = await reading;
  for (let n = 5; n < 10; n++) await write(n);
  const second = await world.stack.run("gateway", { GATEWAY_PORT: "0" });
  await read(addressOf(second), indexes, 10, lastId);
  expect(indexes).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});
