/**
 * Bundles the compiled modules (.build) into dist: Node spends more time on finding and opening hundreds of small files
 * than on running them. One graph for services and public entry points, so that each class exists once whoever loads it.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = dirname(fileURLToPath(import.meta.url));
const from = join(root, ".build");
const to = join(root, "dist");

/** What is imported by its name, run by its path, or started as a process or a thread. */
const entries = [
  "schemas/index",
  "shared/sdk/index",
  "shared/sdk/client-entry",
  "shared/inference/index",
  "shared/testing/index",
  "shared/leases/renewal-thread",
  "services/health",
  "services/cli/main",
  "services/gateway/main",
  "services/orchestrator/main",
  "services/orchestrator/watchdog-thread",
  "services/watcher/main",
  "services/worker/main",
  "services/worker/supervise/supervisor",
  "services/worker/hosts/process/process-main",
  "services/worker/hosts/process/parent-watch",
  "services/worker/hosts/thread/thread-main",
];

/** Many small files that nobody has to share with us. Everything else stays a package of its own. */
const bundled =
  /^(zod|commander|croner|hono|@hono\/node-server|@nats-io\/[a-z-]+|@standard-schema\/spec)(\/|$)/;
const isOurs = (id) => /^[./\0]/.test(id) || id === "module-address";

/** `import.meta.url` of a module is where it was before it was bundled: files beside it are found by it. */
const addresses = {
  name: "module-addresses",
  resolveId: (id) => (id === "module-address" ? "\0module-address" : undefined),
  load: (id) =>
    id === "\0module-address"
      ? 'export const addressOf = (path) => new URL("../" + path, import.meta.url).href;'
      : undefined,
  transform(code, id) {
    if (!id.startsWith(from) || !code.includes("import.meta.url")) return undefined;
    const path = JSON.stringify(relative(from, id));
    return `import { addressOf as moduleAddressOf } from "module-address";${code.replaceAll("import.meta.url", `moduleAddressOf(${path})`)}`;
  },
};

const build = await rolldown({
  cwd: root,
  input: Object.fromEntries(entries.map((entry) => [entry, join(from, `${entry}.js`)])),
  platform: "node",
  external: (id) => !isOurs(id) && !bundled.test(id),
  plugins: [addresses],
  // Each module begins with a comment that names it: whoever follows a stack trace sees where he is.
  experimental: { attachDebugInfo: "simple" },
});
rmSync(join(to, "chunks"), { recursive: true, force: true });
const { output } = await build.write({
  dir: to,
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
  codeSplitting: {
    groups: [{ name: "module-address", test: /module-address/ }],
  },
});

/** The licences of what is inside ask to be passed on. */
const packages = new Set();
for (const chunk of output)
  for (const id of chunk.type === "chunk" ? chunk.moduleIds : []) {
    const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? [];
    if (folder) packages.add(folder);
  }
const notices = [...packages].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const text = ["LICENSE", "LICENSE.md", "license", "LICENSE.txt"].flatMap((file) => {
    try {
      return [readFileSync(join(folder, file), "utf8").trim()];
    } catch {
      return [];
    }
  });
  return [`${name} ${version} (${license})`, "", ...text.slice(0, 1)].join("\n");
});
writeFileSync(join(to, "THIRD-PARTY.txt"), `${notices.join("\n\n---\n\n")}\n`);
