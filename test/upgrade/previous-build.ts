/** The build an installation is upgraded from: the sources of an earlier commit, with the packages that are here. */
import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageDir } from "../../services/version.ts";

const run = promisify(execFile);

/** 0.1.0, the last that refused fields it did not know. */
export const previousCommit = "f3b259f";

export interface PreviousBuild {
  bin: string;
  remove(): Promise<void>;
}

/** Undefined where the commit cannot be had, as in a shallow clone. */
export async function previousBuild(say: (line: string) => void): Promise<PreviousBuild | undefined> {
  const project = packageDir();
  const known = await run("git", ["cat-file", "-e", `${previousCommit}^{commit}`], { cwd: project }).then(
    () => true,
    () => false,
  );
  if (!known) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "holdfast-previous-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    say(`building ${previousCommit} in ${folder}`);
    const archive = join(folder, "sources.tar");
    await run("git", ["archive", "-o", archive, previousCommit], { cwd: project });
    await run("tar", ["xf", archive, "-C", folder]);
    await symlink(join(project, "node_modules"), join(folder, "node_modules"));
    await run(
      process.execPath,
      [join(project, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"],
      {
        cwd: folder,
      },
    );
    await mkdir(join(folder, "dist", "dashboard"), { recursive: true });
    const bin = join(folder, "bin", "holdfast.js");
    await access(bin);
    return { bin, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
