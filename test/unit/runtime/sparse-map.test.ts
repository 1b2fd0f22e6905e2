import { expect, test } from "vitest";
import { SparseMap } from "../../../shared/runtime/index.ts";

test("behaves as a Map, empty or not", () => {
  const map = new SparseMap<string, number>();
  const real = new Map<string, number>();
  const both = (act: (one: SparseMap<string, number> | Map<string, number>) => unknown) => {
    const results = [map, real].map((one) => {
      const result = act(one);
      return result === one ? "itself" : result;
    });
    expect(results[0]).toEqual(results[1]);
    expect([[...map], [...map.keys()], [...map.values()], map.size]).toEqual([
      [...real],
      [...real.keys()],
      [...real.values()],
      real.size,
    ]);
  };
  both((one) => one.get("a"));
  both((one) => one.delete("a"));
  both((one) => one.set("a", 1));
  both((one) => one.set("b", 2));
  both((one) => one.has("a"));
  both((one) => one.delete("a"));
  both((one) => one.delete("b"));
  both((one) => one.has("b"));
  both((one) => one.set("c", 3));
  both((one) => one.clear());
  both((one) => one.get("c"));
});

test("the last entry can be deleted while it is visited", () => {
  const map = new SparseMap<number, string>().set(1, "a").set(2, "b");
  const seen: number[] = [];
  for (const [key] of map) {
    seen.push(key);
    map.delete(key);
  }
  expect(seen).toEqual([1, 2]);
  expect(map.size).toBe(0);
});

test("a comparison of states sees what is in it", () => {
  const with1 = () => new SparseMap<number, string>().set(1, "a");
  expect({ tasks: with1() }).toEqual({ tasks: with1() });
  expect({ tasks: with1() }).not.toEqual({ tasks: new SparseMap() });
  expect({ tasks: with1() }).not.toEqual({ tasks: with1().set(1, "b") });
});
