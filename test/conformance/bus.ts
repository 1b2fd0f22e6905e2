/** What every bus must do. Run on the real server and on its twin, so that what holds in simulation holds outside. */
import { afterAll, beforeAll, describe } from "vitest";
import { delivery } from "./bus-delivery.ts";
import { outage } from "./bus-outage.ts";
import { theRest } from "./bus-rest.ts";
import { storage } from "./bus-storage.ts";
import type { BusRig } from "./rig.ts";

export function busConformance(name: string, make: () => Promise<BusRig>): void {
  describe(`bus on ${name}`, () => {
    let made: BusRig;
    const rig = () => made;
    beforeAll(async () => {
      made = await make();
    });
    afterAll(async () => {
      await made.close();
    });
    storage(rig);
    delivery(rig);
    theRest(rig);
    outage(rig);
  });
}
