/**
 * `npx tsx test/support/documents/complete-lockfile.ts` after an `npm install` against a registry that does not carry the packages
 * of every platform: npm leaves those out of the lock file, and `npm ci` then refuses it everywhere. They are written
 * back by name and version; whoever is on such a platform resolves them there.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

interface Locked {
  version?: string;
  integrity?: string;
  link?: boolean;
  dev?: boolean;
  devOptional?: boolean;
  peer?: boolean;
  hasInstallScript?: boolean;
  license?: string;
  optional?: boolean;
  engines?: { node?: string };
  optionalDependencies?: Record<string, string>;
  cpu?: string[];
  os?: string[];
  libc?: string[];
}
export interface Lockfile {
  packages: Record<string, Locked>;
}

export const lockfilePath = fileURLToPath(new URL("../../../package-lock.json", import.meta.url));

/** Optional dependencies nothing in the lock file stands for: place → what to write there. */
export function missingFrom({ packages }: Lockfile): Map<string, Locked> {
  const missing = new Map<string, Locked>();
  for (const [place, locked] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(locked.optionalDependencies ?? {})) {
      if (!isLocked(packages, place, name))
        missing.set(`node_modules/${name}`, entryFor(name, version, locked));
    }
  }
  return missing;
}

/** As Node looks it up: beside the dependent, then one folder up, and so on. */
function isLocked(packages: Lockfile["packages"], place: string, name: string): boolean {
  for (
    let base = place;
    ;
    base = base.includes("/node_modules/") ? base.slice(0, base.lastIndexOf("/node_modules/")) : ""
  ) {
    if (`${base === "" ? "" : `${base}/`}node_modules/${name}` in packages) return true;
    if (base === "") return false;
  }
}

const systems = [
  "android",
  "darwin",
  "win32",
  "linux",
  "freebsd",
  "openharmony",
  "netbsd",
  "openbsd",
  "sunos",
  "aix",
];
const processors = [
  "wasm32",
  "arm64",
  "x64",
  "ia32",
  "ppc64",
  "s390x",
  "riscv64",
  "loong64",
  "mips64el",
  "arm",
];

function entryFor(name: string, version: string, { dev, license }: Locked): Locked {
  const words = (name.split("/").at(-1) ?? "").split("-");
  const os = systems.filter((system) => words.includes(system));
  const cpu = processors.find((processor) => words.includes(processor));
  const libc = words.includes("musl")
    ? "musl"
    : words.some((word) => word.startsWith("gnu"))
      ? "glibc"
      : undefined;
  return {
    version: version.replace(/^[~^]/, ""),
    ...(cpu && { cpu: [cpu] }),
    ...(dev && { dev }),
    ...(libc && { libc: [libc] }),
    ...(license && { license }),
    optional: true,
    ...(os.length > 0 && { os }),
  };
}

export const readLockfile = (): Lockfile => JSON.parse(readFileSync(lockfilePath, "utf8"));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const lockfile = readLockfile();
  for (const [place, entry] of missingFrom(lockfile)) lockfile.packages[place] = entry;
  const sorted = Object.entries(lockfile.packages).sort(([a], [b]) => (a < b ? -1 : 1));
  lockfile.packages = Object.fromEntries(sorted);
  writeFileSync(lockfilePath, `${JSON.stringify(lockfile, null, 2)}\n`);
}
