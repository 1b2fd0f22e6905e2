/** Removes what is stored of an ended instance, as retention does; the register of sessions is another step's. */
import { Bucket } from "../../../shared/bus/index.ts";
import { historiesAt } from "../../../shared/testing/world/members.ts";
import type { World } from "../../../shared/testing/world/world.ts";

export async function removeInstance(world: World, instanceId: string): Promise<void> {
  const { outside: bus, names, runtime } = world;
  const histories = historiesAt({ bus, names, runtime }, 1);
  await world.run(histories.look(instanceId).then((seen) => histories.remove(seen)));
  await world.run(new Bucket(bus, names.bucket("instances")).delete(instanceId));
}
