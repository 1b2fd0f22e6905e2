/**
 * A Docker engine out of Debian's packages, unpacked into the cache folder and not installed. The engine and compose v2 come
 * from the newer suite (Debian's stable has no compose v2), runc and iptables, which are bound to the system's libraries,
 * from the machine's own.
 */
import { access, mkdir, readdir, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { openApt, type Suite } from "../../../shared/embedded-nats/apt-workspace.ts";
import { defaultCacheDir } from "../../../shared/embedded-nats/index.ts";
import { command } from "../command.ts";

const packages: Readonly<Record<Suite, readonly string[]>> = {
  newer: ["docker.io", "docker-cli", "docker-compose", "docker-buildx", "containerd", "tini-static"],
  own: [
    "runc",
    "libseccomp2",
    "iptables",
    "libxtables12",
    "libip4tc2",
    "libip6tc2",
    "libmnl0",
    "libnftnl11",
    "libnfnetlink0",
    "libnetfilter-conntrack3",
  ],
};

/** Where the packages lie unpacked. Throws with the reason when they cannot be had. */
export async function enginePackages(say: (line: string) => void): Promise<string> {
  const folder = join(dirname(defaultCacheDir()), "docker-engine");
  const there = await access(folder).then(
    () => true,
    () => false,
  );
  if (there) return folder;
  const staged = `${folder}.${process.pid}`;
  try {
    await mkdir(staged, { recursive: true });
    for (const suite of ["newer", "own"] as const) await unpack(suite, staged, say);
    await nameIptables(staged);
    await rename(staged, folder);
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
  return folder;
}

async function unpack(suite: Suite, into: string, say: (line: string) => void): Promise<void> {
  const opened = await openApt(suite);
  if (opened.kind === "failed") throw new Error(opened.reason);
  await using apt = opened.apt;
  say(`fetching ${packages[suite].join(", ")} (suite ${apt.suite})`);
  await apt.update();
  const download = await apt.download(...packages[suite]);
  if (download.kind === "failed") throw new Error(download.reason);
  for (const name of (await readdir(apt.folder)).filter((file) => file.endsWith(".deb"))) {
    await command("dpkg", ["-x", join(apt.folder, name), into]);
  }
}

/** The names the package's installation would have made. */
async function nameIptables(root: string): Promise<void> {
  for (const name of ["iptables", "ip6tables", "iptables-save", "iptables-restore", "ip6tables-restore"]) {
    await symlink("xtables-nft-multi", join(root, "usr", "sbin", name));
  }
}
