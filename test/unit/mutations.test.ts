import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { mutations } from "../simulation/mutations.ts";

test.each(mutations)("the guard that can be taken out is there once: $name", ({ file, find }) => {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
  expect(text.split(find)).toHaveLength(2);
});
