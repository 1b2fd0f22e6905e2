/** docs/laws.md is the one place where laws are written: everything the code cites is there, once, with a test. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** `| T1 | says | kept in | test |` */
const rowPattern = /^\| ((?:[TSFI]\d+)|(?:[A-Z]\d)|(?:[A-Z]+-\d+)) \| (.+) \| (\S+) \| (\S+) \|$/;
const laws = read("docs/laws.md")
  .split("\n")
  .flatMap((line) => {
    const [, id = "", says = "", keptIn = "", tested = ""] = rowPattern.exec(line) ?? [];
    return id ? [{ id, says, keptIn, tested }] : [];
  });

/** A law named in a comment: at the start of its sentence, or in brackets. */
const commentPattern = /\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;
const citation = /(?<![\w-])(?:[TSI]\d{1,2}|F\d{1,2}|[EQGKXDCBV][12]|[A-Z]{3,}-\d{1,2})(?![\w-])/g;
const noLaw = /^(?:V8|SHA-|UTF-|ISO-|RFC-|ASCII-|ADR-)/;

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

test("every law cited in the code is defined", () => {
  const defined = new Set(laws.map(({ id }) => id));
  const unknown = new Set<string>();
  for (const file of ["schemas", "shared", "services"].flatMap(sources)) {
    for (const [comment] of read(file).matchAll(commentPattern)) {
      for (const [id] of comment.matchAll(citation)) {
        if (!defined.has(id) && !noLaw.test(id)) unknown.add(`${file} cites ${id}`);
      }
    }
  }
  expect([...unknown]).toEqual([]);
});

test("every law is defined once, and names files that exist", () => {
  expect(laws.length).toBeGreaterThan(130);
  const twice = laws.map(({ id }) => id).filter((id, i, all) => all.indexOf(id) !== i);
  expect(twice, "defined twice").toEqual([]);
  const missing = laws.flatMap(({ id, keptIn, tested }) =>
    [keptIn, ...(tested === "–" ? [] : [tested])]
      .filter((path) => !existsSync(join(root, path)))
      .map((path) => `${id} names ${path}, which is not there`),
  );
  expect(missing).toEqual([]);
});

test("every law names a test that would fail", () => {
  expect(laws.filter(({ tested }) => tested === "–").map(({ id }) => id)).toEqual([]);
});
