/**
 * Writes samples of everything on the wire as this version writes it, once per generation:
 *
 *     npm run golden:wire -- <folder>
 *
 * `made`: what orchestrators, workers, a watcher and a client said in a simulated day, one of each shape. `samples`:
 * every branch of every schema, for what no such day brings about. `histories`: whole ones, to be replayed.
 * What is in a folder of an earlier generation is never written again (schemas/README.md).
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { collectApp } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { expected, simulatedApp } from "../../apps/simulated.ts";
import { samplesOf } from "../../support/documents/samples.ts";
import { answeredAs, everyWired, wiredAs, wiredHeaders } from "../../support/documents/wire-schemas.ts";
import { tapWorld } from "../../support/nats/tapped-bus.ts";

const folder = process.argv[2];
if (folder === undefined) throw new Error("into which folder?");

/** Two with the same keys and kinds are one. */
function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return `[${[...new Set(value.map(shapeOf))].sort().join()}]`;
  if (typeof value !== "object" || value === null) return typeof value;
  const fields = Object.entries(value).map(([key, one]) =>
    key === "kind" || key === "phase" || key === "status"
      ? `${key}=${String(one)}`
      : `${key}:${shapeOf(one)}`,
  );
  return `{${fields.sort().join()}}`;
}

const made = new Map<string, Map<string, unknown>>();
const keep = (name: string, json: string): void => {
  const value: unknown = JSON.parse(json);
  const shapes = made.get(name) ?? new Map<string, unknown>();
  made.set(name, shapes);
  const shape = shapeOf(value);
  if (!shapes.has(shape) && shapes.size < 40) shapes.set(shape, value);
};

/** One value a line: a change is seen in the line it is in. */
const write = (path: string, values: readonly unknown[]): void => {
  const file = join(folder, path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, values.map((value) => `${JSON.stringify(value)}\n`).join(""));
};

let world: World;
const app = collectApp(simulatedApp(() => world));
world = new World({ seed: 11, app, faults: noFaults, layout: "per-instance" });
tapWorld(world, ({ subject, body, headers, answer }) => {
  const wired = answer ? answeredAs(subject) : wiredAs(subject);
  if (wired) keep(wired.name, new TextDecoder().decode(body));
  for (const [name, { name: file }] of Object.entries(wiredHeaders)) {
    const value = headers[name];
    if (value !== undefined) keep(file, value);
  }
  return { body, headers };
});
await world.prepare();
const orchestrator = await world.orchestrator();
await world.orchestrator();
const worker = await world.worker();
await world.worker();
await world.watcher();
const size = 3;
const handles = [];
for (const name of Object.keys(expected)) {
  handles.push(await world.start(name, size, `${name}-x`));
  if (name === "signals") for (let i = 0; i < size; i++) await world.signal(`${name}-x`, "tick", i);
}
const cancelled = await world.start("signals", size, "cancelled-x");
const terminated = await world.start("timers", 100, "terminated-x");
await world.clock.advance(400);
worker.kill();
await world.worker();
await world.clock.advance(1000);
orchestrator.kill();
await world.run(cancelled.cancel("enough"));
await world.run(terminated.terminate("enough"));
for (const handle of handles) await world.run(handle.result(), 3_600_000);
await world.clock.advance(60_000);

for (const name of [...Object.keys(expected), "cancelled", "terminated"]) {
  write(`histories/${name}.jsonl`, (await world.history(`${name}-x`)) ?? []);
}
for (const [name, shapes] of made) write(`made/${name}.jsonl`, [...shapes.values()]);
for (const { name, schema } of everyWired()) {
  const samples = samplesOf(schema);
  for (const sample of samples) schema.parse(sample);
  write(`samples/${name}.jsonl`, samples);
}
process.exit(0);
