import { beforeEach, describe, expect, test } from "vitest";
import { Grace } from "../../../services/watcher/grace.ts";
import { type Happening, seededRandom } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../support/simulated-clock.ts";

let clock: SimulatedClock;
let happenings: Happening[];
let grace: Grace;

beforeEach(() => {
  clock = new SimulatedClock();
  happenings = [];
  const announce = (happening: Happening) => void happenings.push(happening);
  grace = new Grace({ clock, random: seededRandom(1), announce }, 15_000);
});

describe("after an outage of the bus (S14)", () => {
  test("expiries wait for one TTL, the session's own where it has one", async () => {
    grace.outageOver(20_000, "away");
    expect(grace.leftMs()).toBe(15_000);
    expect(grace.leftMs(30_000)).toBe(30_000);
    await clock.advance(14_000);
    expect(grace.leftMs()).toBe(1000);
    expect(grace.leftMs(3000)).toBe(0);
    await clock.advance(1000);
    expect(grace.leftMs()).toBe(0);
    expect(happenings).toEqual([{ kind: "watcher.grace", ms: 15_000, why: "away" }]);
  });

  test("one too short to cost anybody a lease delays nothing", () => {
    grace.outageOver(800, "blip");
    expect(grace.leftMs()).toBe(0);
    expect(grace.leftMs(1000)).toBe(1000);
    expect(happenings).toEqual([]);
  });

  test("a blip within the grace does not end it", async () => {
    grace.outageOver(20_000, "away");
    await clock.advance(5000);
    grace.outageOver(100, "blip");
    expect(grace.leftMs()).toBe(15_000);
  });

  test("a long outage long ago says nothing about a blip now", async () => {
    grace.outageOver(20_000, "away");
    await clock.advance(60_000);
    grace.outageOver(100, "blip");
    expect(grace.leftMs()).toBe(0);
  });
});
