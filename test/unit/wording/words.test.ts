import { expect, it } from "vitest";
import { phaseWord, shortEpoch } from "../../../shared/wording/index.ts";

it("shows epochs short, and still tells two holders of one session apart", () => {
  expect(shortEpoch(118)).toBe("118");
  expect(shortEpoch(15_751)).toBe("15751");
  expect(shortEpoch(1_794_959_400_120_045)).toBe("…0045");
  expect(shortEpoch(1_794_959_400_120_045)).not.toBe(shortEpoch(1_794_959_400_120_046));
});

it("calls a session whose state was put away idle: parked is an instance that is stuck", () => {
  expect(phaseWord("parked")).toBe("idle");
  expect(phaseWord("active")).toBe("active");
});
