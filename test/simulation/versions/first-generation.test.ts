/**
 * E1: while a process of generation 1 is alive, nothing is written that 0.1.0 would refuse. Its strict
 * schemas are in `test/golden/wire/v1/schemas`; every message of a simulated day is checked with them.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { collectApp } from "../../../shared/definitions/index.ts";
import { fixedGeneration } from "../../../shared/fleet/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { expected, simulatedApp } from "../../apps/simulated.ts";
import { answeredAs, wiredAs } from "../../support/documents/wire-schemas.ts";
import { tapWorld } from "../../support/nats/tapped-bus.ts";

const folder = new URL("../../golden/wire/v1/schemas/", import.meta.url);
const strict = new Map<string, z.ZodType | undefined>();

function strictOf(name: string): z.ZodType | undefined {
  if (!strict.has(name)) {
    try {
      const json: z.core.JSONSchema.JSONSchema = JSON.parse(
        readFileSync(new URL(`${name}.json`, folder), "utf8"),
      );
      strict.set(name, z.fromJSONSchema(json));
    } catch {
      strict.set(name, undefined); // 0.1.0 published none of it
    }
  }
  return strict.get(name);
}

const size = 3;
/** They use features that cannot be recorded for generation 1, and get an error. */
const later = ["locals"];

test("what is written for generation 1 fits the strict schemas of 0.1.0", async () => {
  let world: World;
  const app = collectApp(simulatedApp(() => world));
  world = new World({ seed: 21, app, faults: noFaults, generation: fixedGeneration(1) });
  const refused = new Map<string, string>();
  const held = new Set<string>();
  tapWorld(world, ({ subject, body, headers, answer }) => {
    const name = (answer ? answeredAs(subject) : wiredAs(subject))?.name;
    const schema = name === undefined ? undefined : strictOf(name);
    if (name !== undefined && schema) {
      held.add(name);
      const text = new TextDecoder().decode(body);
      const { error } = schema.safeParse(JSON.parse(text));
      if (error) refused.set(name, `${z.prettifyError(error)} in ${text}`);
    }
    return { body, headers };
  });
  await world.prepare();
  const orchestrator = await world.orchestrator();
  await world.orchestrator();
  const worker = await world.worker();
  await world.worker();
  await world.watcher();
  const handles = [];
  for (const name of Object.keys(expected).filter((one) => !later.includes(one))) {
    handles.push(await world.start(name, size, `${name}-x`));
    if (name === "signals") for (let i = 0; i < size; i++) await world.signal(`${name}-x`, "tick", i);
  }
  await world.clock.advance(500);
  worker.kill();
  await world.worker();
  await world.clock.advance(2000);
  orchestrator.kill();
  for (const handle of handles) await world.run(handle.result(), 3_600_000);
  expect(Object.fromEntries(refused)).toEqual({});
  for (const name of ["commit", "session-record", "worker-info", "session-claim"])
    expect(held).toContain(name);
});
