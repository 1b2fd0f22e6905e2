/**
 * What calls cost on shared/bus and on the published NATS libraries: the client's CPU for each, both over one server.
 * `npx tsx bench/costs/nats-client.ts`; its figures stand in shared/bus/README.md.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";
import { connect } from "@nats-io/transport-node";
import { Bucket, connectBus } from "../../shared/bus/index.ts";
import { startEmbeddedNats } from "../../shared/embedded-nats/index.ts";
import { silent, systemRandom } from "../../shared/runtime/index.ts";

async function costOf(name: string, times: number, atOnce: number, act: (i: number) => Promise<unknown>) {
  for (let i = 0; i < 50; i++) await act(i);
  const before = process.cpuUsage();
  let next = 0;
  const loop = async () => {
    while (next < times) await act(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
  const { user, system } = process.cpuUsage(before);
  console.log(`${name}: ${((user + system) / times).toFixed(1)} µs`);
}

const dataDir = mkdtempSync(join(tmpdir(), "holdfast-nats-client-"));
const nats = await startEmbeddedNats({ dataDir });
const library = await connect({ servers: nats.url });
const bus = await connectBus({ url: nats.url, name: "nats-client", announce: silent });
try {
  const jsm = await jetstreamManager(library);
  const stream = "READS";
  await jsm.streams.add({ name: stream, subjects: ["reads.>"], allow_direct: true });
  const body = new Uint8Array(256);
  for (let i = 0; i < 100; i++) await bus.publish(`reads.${i}`, body);
  const store = await new Objm(library).create("blobs");
  const kv = await new Kvm(library).create("entries");
  const bucket = new Bucket(bus, "entries", { random: systemRandom });
  await bus.blobs.put("blob", new Uint8Array(100_000));

  const subject = (i: number) => `reads.${i % 100}`;
  for (let round = 1; round <= 2; round++) {
    await costOf("last message, library", 30_000, 64, (i) =>
      jsm.direct.getMessage(stream, { last_by_subj: subject(i) }),
    );
    await costOf("last message, bus", 30_000, 64, (i) => bus.last(stream, subject(i)));
    await costOf("stream, library", 30_000, 64, () => jsm.streams.info(stream));
    await costOf("stream, bus", 30_000, 64, () => bus.streamInfo(stream));
    await costOf("entry, library", 8_000, 64, (i) => kv.put(`key${i % 100}`, body));
    await costOf("entry, bus", 8_000, 64, (i) => bucket.put(`key${i % 100}`, body));
    // More reads in a short time, and the server refuses the library further consumers.
    await costOf("blob of 100 KB, library", 300, 4, () => store.getBlob("blob"));
    await costOf("blob of 100 KB, bus", 300, 4, () => bus.blobs.get("blob"));
  }
} finally {
  await bus.close();
  await library.close();
  await nats.stop();
  rmSync(dataDir, { recursive: true, force: true });
}
