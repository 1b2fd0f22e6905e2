/** Builds, unless nothing has changed since the last build. */
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";

const sources = [
  "schemas",
  "shared",
  "services",
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "bundle.mjs",
];

/** Latest change below a path, in milliseconds; 0 where there is nothing. */
function changed(path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => changed(`${path}/${name}`)));
}

// The dashboard is built last.
const built = changed("dist/dashboard/index.html");
if (built < Math.max(...sources.map(changed))) {
  const { status } = spawnSync("npm", ["run", "--silent", "build"], { stdio: "inherit" });
  process.exitCode = status ?? 1;
}
