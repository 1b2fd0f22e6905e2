/**
 * Returns false if Node alone loads this application as our hooks would. Where hooks need a thread (Node 20), that saves
 * every service the start of that thread. In doubt it returns true.
 */
import { readFileSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { hasNoLoweredUsing } from "./correct-using.ts";
import type { OwnModules } from "./own-modules.ts";

/** With more files, reading all of them here would cost more than the hooks' thread. */
const mostFiles = 200;

export function needsHooks(entry: string, { own }: OwnModules): boolean {
  const seen = new Set<string>([entry]);
  for (const file of seen) {
    if (seen.size > mostFiles || !/\.m?js$/.test(file)) return true;
    const code = textOf(file);
    const imported = code === undefined ? undefined : importedBy(code);
    if (code === undefined || imported === undefined || !hasNoLoweredUsing(code)) return true;
    const { resolve } = createRequire(file);
    for (const name of imported) {
      if (isBuiltin(name)) continue;
      try {
        if (/^\.{0,2}\//.test(name)) seen.add(fileURLToPath(new URL(name, urlOf(file))));
        else if (name in own ? urlOf(resolve(name)) !== own[name] : importsOtherCopy(resolve(name), own))
          return true;
      } catch {
        return true; // The application's folder lacks the package: the hooks find it beside Holdfast.
      }
    }
  }
  return false;
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined; // Importing the file will report the error.
  }
}

const urlOf = (path: string): string => pathToFileURL(path).href;

/** True if a package that the application uses would import another copy of Holdfast. */
function importsOtherCopy(file: string, own: OwnModules["own"]): boolean {
  try {
    return urlOf(createRequire(file).resolve("holdfast")) !== own.holdfast;
  } catch {
    return false; // The package finds no copy of Holdfast, so it imports none.
  }
}

/** The names of all modules that the code imports; undefined if it computes one. */
function importedBy(code: string): string[] | undefined {
  const called = [...code.matchAll(/\bimport\s*\(\s*(?:"([^"]+)"|'([^']+)')?/g)];
  if (called.some(([, double, single]) => (double ?? single) === undefined)) return undefined;
  const declared = code.matchAll(/(?:\bfrom|\bimport)\s*(?:"([^"]+)"|'([^']+)')/g);
  return [...called, ...declared].map(([, double, single]) => double ?? single ?? "");
}
