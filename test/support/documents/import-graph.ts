/**
 * Draws which folders import which, from the sources, into docs/architecture.md: `npm run docs:graph`. A test compares.
 * An arrow that two others already imply is left out, so that the picture shows the layers.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
export const page = join(root, "docs/architecture.md");
const begin = "<!-- imports: written by npm run docs:graph -->";
const end = "<!-- end of imports -->";

/** The kit for tests runs every service and would point at everything. */
const leftOut = new Set(["shared/testing"]);

const sources = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));

function folderOf(file: string): string {
  const [top = "", second = ""] = file.split("/");
  if (top === "schemas" || (top === "services" && second.endsWith(".ts"))) return top;
  return `${top}/${second}`;
}

function imports(): Map<string, Set<string>> {
  const graph = new Map<string, Set<string>>();
  for (const file of ["schemas", "shared", "services"].flatMap(sources)) {
    const from = folderOf(file);
    if (leftOut.has(from)) continue;
    const to = graph.get(from) ?? new Set<string>();
    graph.set(from, to);
    for (const [, path = ""] of readFileSync(join(root, file), "utf8").matchAll(/from "(\.[^"]+)"/g)) {
      const target = folderOf(relative(root, resolve(root, dirname(file), path)));
      if (target !== from && !leftOut.has(target) && !target.startsWith("test")) to.add(target);
    }
  }
  return graph;
}

function reaches(
  graph: Map<string, Set<string>>,
  from: string,
  to: string,
  seen = new Set<string>(),
): boolean {
  if (from === to) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return [...(graph.get(from) ?? [])].some((next) => reaches(graph, next, to, seen));
}

const idOf = (folder: string): string => folder.replace(/[^a-z]/g, "_");

function drawn(): string {
  const graph = imports();
  const arrows = [...graph].flatMap(([from, targets]) =>
    [...targets]
      .filter((to) => ![...targets].some((other) => other !== to && reaches(graph, other, to)))
      .map((to) => `  ${idOf(from)}["${from}"] --> ${idOf(to)}["${to}"]`),
  );
  return `${begin}\n\n\`\`\`mermaid\nflowchart TD\n${arrows.sort().join("\n")}\n\`\`\`\n\n${end}`;
}

export function withGraph(text: string): string {
  const [before = "", rest] = text.split(begin);
  if (rest === undefined) return `${text.trimEnd()}\n\n## Which folder imports which\n\n${drawn()}\n`;
  return `${before}${drawn()}${rest.slice(rest.indexOf(end) + end.length)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(page, withGraph(readFileSync(page, "utf8")));
