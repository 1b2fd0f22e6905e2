/**
 * The public surface as text, from the built declarations: every name an entry of package.json exports, with its
 * declaration. `npm run api` writes it to docs/api.md; a test compares, so that a change of the surface is seen.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../..");

interface Declared {
  readonly name: string;
  readonly text: string;
  readonly documented: boolean;
  /** The names of this package's types that the declaration mentions. */
  readonly mentions: readonly string[];
}

/** Import path → names, sorted. */
export function publicApi(): Map<string, Declared[]> {
  const manifest: { exports: Record<string, string | { types: string }> } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  );
  const surface = new Map<string, Declared[]>();
  for (const [entry, target] of Object.entries(manifest.exports)) {
    if (typeof target === "string") continue;
    const found = new Map<string, Declared>();
    collect(join(root, target.types), undefined, found);
    const names = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    surface.set(entry === "." ? "holdfast" : `holdfast${entry.slice(1)}`, names);
  }
  return surface;
}

export function describeApi(surface: Map<string, Declared[]>): string {
  const parts = ["# Public API\n\nWritten by `npm run api` from the built declarations; a test compares.\n"];
  for (const [path, names] of surface) {
    // The wire has its own description, as JSON Schema.
    if (path === "holdfast/schemas") {
      parts.push(`## ${path}\n\n${names.map(({ name }) => `\`${name}\``).join(", ")}\n`);
      continue;
    }
    parts.push(`## ${path}\n\n\`\`\`ts\n${names.map(({ text }) => text).join("\n\n")}\n\`\`\`\n`);
  }
  return parts.join("\n");
}

/** Follows re-exports. `wanted`: local name → exported name; undefined: everything. */
function collect(file: string, wanted: Map<string, string> | undefined, into: Map<string, Declared>): void {
  const text = readFileSync(file, "utf8");
  const from = (path: string) => {
    const target = join(dirname(file), path).replace(/\.(?:ts|js)$/, ".d.ts");
    return existsSync(target) ? target : undefined;
  };
  for (const [, names = "", path] of text.matchAll(
    /^export (?:type )?\{([^}]*)\}(?: from "(\.[^"]*)")?;?/gm,
  )) {
    const target = path === undefined ? file : from(path);
    if (!target) continue;
    const next = new Map<string, string>();
    for (const one of names.split(",").map((name) => name.trim().replace(/^type /, ""))) {
      const [local = "", exported = local] = one.split(/ as /);
      const as = wanted ? wanted.get(exported) : exported;
      if (local && as) next.set(local, as);
    }
    if (next.size === 0) continue;
    if (target !== file) collect(target, next, into);
    else
      for (const [local, as] of next) {
        const path = importOf(text, local);
        const imported = path && from(path);
        if (imported) collect(imported, new Map([[local, as]]), into);
        else declare(text, local, as, into);
      }
  }
  for (const [, path = ""] of text.matchAll(/^export (?:type )?\* from "(\.[^"]*)";?/gm)) {
    const target = from(path);
    if (target) collect(target, wanted, into);
  }
  const own = /^export (?:declare )?(?:abstract )?(?:class|function|const|interface|type|enum) ([\w$]+)/gm;
  for (const [, name = ""] of text.matchAll(own)) {
    const as = wanted ? wanted.get(name) : name;
    if (as) declare(text, name, as, into);
  }
}

/** The path that the name is imported from; undefined if this file declares it. */
function importOf(text: string, name: string): string | undefined {
  const imports = text.matchAll(/^import (?:type )?\{([^}]*)\} from "(\.[^"]*)";?/gm);
  for (const [, names = "", path = ""] of imports)
    if (names.split(",").some((one) => one.trim().replace(/^type /, "") === name)) return path;
  return undefined;
}

function declare(text: string, name: string, as: string, into: Map<string, Declared>): void {
  const start = new RegExp(
    `^(?:export )?(?:declare )?(?:abstract )?(?:class|function|const|interface|type|enum) ${name.replace("$", "\\$")}\\b`,
    "gm",
  );
  const found = [...text.matchAll(start)];
  if (found.length === 0) throw new Error(`no declaration of ${name} is found`);
  // A schema's type is spelt out over pages; what it stands for is exported as a type of the same name.
  const texts = found
    .map(({ index }) => text.slice(index, endOf(text, index)))
    .map((one) => one.replace(/^(export declare const [\w$]+: z\.\w+)[\s\S]*/, "$1<…>;"));
  const before = text.slice(0, found[0]?.index ?? 0).trimEnd();
  const declaration = texts
    .join("\n")
    .replace(/\/\*\*[\s\S]*?\*\/\s*/g, "")
    .replace(/^\s*\n/gm, "");
  into.set(as, {
    name: as,
    text: declaration,
    documented: before.endsWith("*/"),
    mentions: namesIn(text).filter((one) => one !== name && new RegExp(`\\b${one}\\b`).test(declaration)),
  });
}

/** The types of this package that a file declares or imports. */
function namesIn(text: string): string[] {
  const declared = text.matchAll(/^(?:export )?(?:declare )?(?:abstract )?(?:class|interface|type) (\w+)/gm);
  const imported = text.matchAll(/^import (?:type )?\{([^}]*)\} from "\.[^"]*";?/gm);
  return [
    ...[...declared].map(([, name = ""]) => name),
    ...[...imported].flatMap(([, names = ""]) =>
      names.split(",").map(
        (one) =>
          one
            .trim()
            .replace(/^type /, "")
            .split(/ as /)
            .at(-1) ?? "",
      ),
    ),
  ].filter((name) => name !== "");
}

/** The end of a declaration: a semicolon or a brace that closes it, outside of brackets. */
function endOf(text: string, start: number): number {
  let depth = 0;
  const block = /^(?:export )?(?:declare )?(?:abstract )?(?:class|interface|enum)\b/.test(text.slice(start));
  for (let index = start; index < text.length; index++) {
    const char = text[index] ?? "";
    if (text.startsWith("/*", index)) index = text.indexOf("*/", index) + 1;
    else if ("{([".includes(char)) depth++;
    else if ("})]".includes(char)) {
      depth--;
      if (depth === 0 && block && char === "}") return index + 1;
    } else if (char === ";" && depth === 0) return index + 1;
  }
  return text.length;
}
