/** The licences of all packages in the lock file. */
import { readLockfile } from "../support/documents/complete-lockfile.ts";

export interface Package {
  name: string;
  version: string;
  licence: string;
  /** Installed with Holdfast; else only for working on it, or for models. */
  installed: boolean;
}

/** Packages whose lock file entry names no licence; read in the packages. */
const known: Readonly<Record<string, string>> = { buildcheck: "MIT", "cpu-features": "MIT", ssh2: "MIT" };

/** Licences that let everybody use, change and pass on; those with duties are accepted for tools and models alone. */
const free = [
  "MIT",
  "Apache-2.0",
  "ISC",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "0BSD",
  "BlueOak-1.0.0",
  "Unlicense",
  "CC0-1.0",
];
const forTools = ["MPL-2.0", "LGPL-3.0-or-later", "CC-BY-4.0"];

export function packages(): Package[] {
  return Object.entries(readLockfile().packages)
    .filter(([path]) => path !== "")
    .map(([path, entry]) => {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      const { version = "", license = known[name] ?? "unknown", dev, devOptional, peer } = entry;
      return { name, version, licence: license, installed: !(dev || devOptional || peer) };
    });
}

/** Whether a package under this licence may be part of Holdfast, or a tool of it. */
export function isAccepted({ licence, installed }: Package): boolean {
  const accepted = installed ? free : [...free, ...forTools];
  const text = licence.replaceAll(/[()]/g, "");
  const alternatives = text.split(" OR ");
  return alternatives.some((one) => one.split(" AND ").every((part) => accepted.includes(part.trim())));
}

export function licencePage(): string {
  const rows = packages()
    .filter(({ installed }) => installed)
    .sort((a, b) => (a.name === b.name ? (a.version < b.version ? -1 : 1) : a.name < b.name ? -1 : 1))
    .map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`);
  return [
    "# Licences",
    "",
    "Holdfast is under the [Apache License 2.0](../LICENSE). These packages are installed with it; the texts of those that are inside the bundle are in `dist/THIRD-PARTY.txt`. Written by `npm run docs:licences` from the lock file.",
    "",
    "| package | version | licence |",
    "| --- | --- | --- |",
    ...new Set(rows),
    "",
  ].join("\n");
}
