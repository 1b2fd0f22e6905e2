/**
 * The way of a new user, outside the repository: the package as it is packed, in an empty folder, then `holdfast init`,
 * the application's check and test, `dev`, a start, a killed worker and the result. The packages it depends on are linked
 * from here, so no registry is needed; `npm run test:pack` does the same with a real `npm install`.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { newUserPath } from "../pack/new-user.ts";

const root = resolve(import.meta.dirname, "../..");
let folder: string;
let modules: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-new-user-"));
  modules = join(folder, "user", "node_modules");
  const args = ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder];
  const packed = execFileSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const tarball = join(folder, packed.trim().split("\n").at(-1) ?? "");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  execFileSync("tar", ["-xzf", tarball, "-C", folder]);
  renameSync(join(folder, "package"), join(modules, "holdfast"));
  const theirs = join(root, "node_modules");
  for (const name of readdirSync(theirs).filter((one) => !one.startsWith(".") && one !== "holdfast"))
    symlinkSync(join(theirs, name), join(modules, name));
  symlinkSync("../holdfast/bin/holdfast.js", join(modules, ".bin", "holdfast"));
  symlinkSync(join(theirs, ".bin", "tsc"), join(modules, ".bin", "tsc"));
});
// nats-server may still write when the process that started it has ended.
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 }));

it("packs, installs, inits, checks, tests, serves, starts, loses its worker and has a result", async () => {
  await newUserPath({
    ...{ folder, installed: join(folder, "user"), version: "0.0.0" },
    install: (shop) => symlinkSync(modules, join(shop, "node_modules")),
  });
}, 240_000);
