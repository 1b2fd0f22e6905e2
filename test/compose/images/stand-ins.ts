/**
 * The base images: pulled where that is possible, else made from what can be had. A stand-in is Debian's C library and
 * busybox with the very program the image is for: Node as the `node` packages on npm bring it, in the pinned version; the
 * nats-server `holdfast dev` would use. It never gets the name of what it stands for.
 */
import {
  access,
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openApt } from "../../../shared/embedded-nats/apt-workspace.ts";
import { findServer } from "../../../shared/embedded-nats/index.ts";
import { attempt, command } from "../command.ts";
import { docker, type Engine } from "../engine/index.ts";
import { type Pinned, pinnedImages } from "./pinned.ts";

export interface BaseImages extends Pinned {
  /** How they were come by, for people. */
  readonly description: string;
}

export async function baseImages(
  engine: Engine,
  say: (line: string) => void,
  kinds: readonly (keyof Pinned)[] = ["node", "base", "nats"],
): Promise<BaseImages> {
  const pinned = await pinnedImages();
  const missing: (keyof Pinned)[] = [];
  for (const kind of kinds) {
    const pull = await attempt("docker", ["pull", "-q", pinned[kind]], { env: engine.env });
    if (pull.code !== 0) missing.push(kind);
  }
  if (missing.length === 0) return { ...pinned, description: Object.values(pinned).join(", ") };
  const names = missing.map((kind) => pinned[kind]).join(", ");
  say(`making stand-ins for ${names}, which cannot be pulled`);
  const made = await makeStandIns(engine, pinned, missing);
  return { ...pinned, ...made, description: `stand-ins for ${names}, which could not be pulled` };
}

async function makeStandIns(
  engine: Engine,
  pinned: Pinned,
  kinds: readonly (keyof Pinned)[],
): Promise<Partial<Pinned>> {
  const work = await mkdtemp(join(tmpdir(), "holdfast-stand-in-"));
  try {
    const root = join(work, "root");
    await debianRoot(root);
    const made: Partial<Pinned> = {};
    for (const kind of kinds) {
      const name = `holdfast-stand-in/${pinned[kind].replace(/[/:]/g, "-")}`;
      const folder = join(work, kind);
      await command("cp", ["-a", root, folder]);
      const changes = await fill[kind](folder, pinned[kind]);
      await importImage(engine, folder, name, changes);
      made[kind] = name;
    }
    return made;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** What each has beside the root; returns what the image's environment needs. */
const fill: Record<keyof Pinned, (folder: string, image: string) => Promise<string[]>> = {
  base: async () => [],
  node: async (folder, image) => {
    const version = /:([\d.]+)/.exec(image)?.[1] ?? "24";
    await npmPackage(`node-linux-${process.arch}@${version}`, join(folder, "opt/node"));
    await npmPackage("npm@11", join(folder, "usr/local/lib/npm"));
    await mkdir(join(folder, "usr/local/bin"), { recursive: true });
    await rename(join(folder, "opt/node/bin/node"), join(folder, "usr/local/bin/node"));
    await rm(join(folder, "opt/node"), { recursive: true });
    await chmod(join(folder, "usr/local/lib/npm/bin/npm-cli.js"), 0o755);
    await symlink("../lib/npm/bin/npm-cli.js", join(folder, "usr/local/bin/npm"));
    return machineTrust(folder);
  },
  nats: async (folder) => {
    await mkdir(join(folder, "usr/local/bin"), { recursive: true });
    await copyFile((await findServer()).path, join(folder, "usr/local/bin/nats-server"));
    return [];
  },
};

async function npmPackage(spec: string, into: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), "holdfast-npm-"));
  try {
    await command("npm", ["pack", "--silent", spec], { cwd: work });
    const file = (await readdir(work)).find((name) => name.endsWith(".tgz"));
    if (file === undefined) throw new Error(`npm pack ${spec} left nothing`);
    await mkdir(into, { recursive: true });
    await command("tar", ["-xzf", join(work, file), "-C", into, "--strip-components=1"]);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The registry and the authorities this machine uses: a stand-in never leaves it. */
async function machineTrust(folder: string): Promise<string[]> {
  const registry = (await attempt("npm", ["config", "get", "registry"])).stdout.trim();
  const changes = [`ENV NPM_CONFIG_REGISTRY=${registry}`];
  const bundle = "/etc/ssl/certs/ca-certificates.crt";
  const there = await access(bundle).then(
    () => true,
    () => false,
  );
  if (!there) return changes;
  await mkdir(join(folder, "etc/ssl/certs"), { recursive: true });
  await copyFile(bundle, join(folder, bundle));
  return [...changes, `ENV NODE_EXTRA_CA_CERTS=${bundle}`];
}

/** A root with a C library, a C++ library and a shell. */
async function debianRoot(root: string): Promise<void> {
  const opened = await openApt("own");
  if (opened.kind === "failed") throw new Error(opened.reason);
  await using apt = opened.apt;
  await apt.update();
  const download = await apt.download("libc6", "libgcc-s1", "libstdc++6", "busybox-static", "base-files");
  if (download.kind === "failed") throw new Error(download.reason);
  for (const name of [
    "usr/bin",
    "usr/sbin",
    "usr/lib",
    "usr/lib64",
    "etc",
    "tmp",
    "root",
    "proc",
    "sys",
    "dev",
  ]) {
    await mkdir(join(root, name), { recursive: true });
  }
  await chmod(join(root, "tmp"), 0o1777);
  for (const name of ["bin", "sbin", "lib", "lib64"]) await symlink(`usr/${name}`, join(root, name));
  for (const name of (await readdir(apt.folder)).filter((file) => file.endsWith(".deb"))) {
    const unpack = 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"';
    await command("sh", ["-c", unpack, "sh", join(apt.folder, name), root]);
  }
  await command(join(root, "bin/busybox"), ["--list"]).then(async (applets) => {
    for (const applet of applets
      .trim()
      .split("\n")
      .filter((name) => name !== "busybox")) {
      await symlink("busybox", join(root, "usr/bin", applet)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      });
    }
  });
  await writeFile(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  await writeFile(join(root, "etc/group"), "root:x:0:\n");
}

async function importImage(engine: Engine, folder: string, name: string, changes: string[]): Promise<void> {
  const archive = `${folder}.tar`;
  await command("tar", ["--owner=0", "--group=0", "--numeric-owner", "-cf", archive, "-C", folder, "."]);
  const path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const options = [path, ...changes].flatMap((change) => ["--change", change]);
  await docker(engine, "import", ...options, archive, name);
  await rm(archive);
}
