import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { accessGuards } from "../guards/guards.ts";
import { mutations } from "../simulation/mutations.ts";

const all = [...mutations, ...accessGuards];

test("every guard has a name of its own", () => {
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
});

test.each(all)("the guard that can be taken out is there once: $name", ({ file, find }) => {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
  expect(text.split(find)).toHaveLength(2);
});

test("docs/proof.md says of each guard of access which test failed without it: npm run test:guards -- --record", () => {
  const text = readFileSync(new URL("../../docs/proof.md", import.meta.url), "utf8");
  const [, table = ""] = /<!-- access-guards -->([\s\S]*?)<!-- \/access-guards -->/.exec(text) ?? [];
  const rows = [...table.matchAll(/^\| (.+?) \| (.+?) \| (.*?) ?\|$/gm)].slice(1);
  expect(rows.map(([, guard]) => guard)).toEqual(accessGuards.map(({ name }) => name));
  expect(rows.filter(([, , , noticedBy]) => noticedBy === "nothing")).toEqual([]);
});

test("docs/proof.md says of each guard what noticed that it was missing; after a change: test:simulation --mutate all --record", () => {
  const text = readFileSync(new URL("../../docs/proof.md", import.meta.url), "utf8");
  const [, table = ""] = /<!-- guards -->([\s\S]*?)<!-- \/guards -->/.exec(text) ?? [];
  const rows = [...table.matchAll(/^\| (.+?) \| (.+?) \| (.*?) ?\|$/gm)].slice(1);
  expect(rows.map(([, guard]) => guard)).toEqual(mutations.map(({ name }) => name));
  for (const [row, , days = "", scenario] of rows)
    expect(scenario !== "" || !days.startsWith("not"), row).toBe(true);
});

test.each(all.filter(({ scenario }) => scenario))(
  "the scenario of a guard is there: $name",
  ({ scenario }) => {
    expect(existsSync(new URL(`../../${scenario}`, import.meta.url))).toBe(true);
  },
);
