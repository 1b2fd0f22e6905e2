/**
 * Bundles the compiled modules (.build) into dist: Node spends more time on finding and opening hundreds of small files
 * than on running them. One graph for services and public entry points, so that each class exists once whoever loads it.
 * The graph is CommonJS, which Node can load with a code cache (bin/code-cache.js); each entry point is an ES module in
 * front of it.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import Module from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Script } from "node:vm";
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

/** Optional, or needed by few: these stay packages of their own. Everything else is loaded at each start. */
const packages = /^(@huggingface|@opentelemetry\/(?!api$)|oauth4webapi|testcontainers|tsx)/;

/**
 * What a module cannot do once it is bundled. `import.meta.url` is where the module was before: files beside it are found
 * by it. A script with a code cache cannot import; this module, which has none, does it for all.
 */
const moduleContext = {
  name: "module-context",
  resolveId: (id) => (id === "module-context" ? "\0module-context" : undefined),
  load: (id) =>
    id === "\0module-context"
      ? `import { pathToFileURL } from "node:url";
export const addressOf = (path) => new URL("../" + path, pathToFileURL(__filename)).href;
export const importModule = (id) => import(id);`
      : undefined,
  transform(code, id) {
    if (!id.startsWith(from)) return undefined;
    const path = JSON.stringify(relative(from, id));
    const bound = code
      .replaceAll("import.meta.url", `moduleAddressOf(${path})`)
      .replaceAll(/(?<![\w.])import\((?!"\.|\$)/g, "moduleImport(");
    if (bound === code) return undefined;
    return `import { addressOf as moduleAddressOf, importModule as moduleImport } from "module-context";${bound}`;
  },
};

const build = await rolldown({
  cwd: root,
  input: Object.fromEntries(entries.map((entry) => [entry, join(from, `${entry}.js`)])),
  platform: "node",
  external: packages,
  plugins: [moduleContext],
  // Each module begins with a comment that names it: whoever follows a stack trace sees where he is.
  experimental: { attachDebugInfo: "simple" },
});
rmSync(join(to, "chunks"), { recursive: true, force: true });
const { output } = await build.write({
  dir: to,
  format: "cjs",
  entryFileNames: "[name].cjs",
  chunkFileNames: "chunks/[name]-[hash].cjs",
  codeSplitting: {
    groups: [{ name: "module-context", test: /module-context/ }],
  },
});

/** V8 keeps a source with any other character at two bytes for each, for as long as the process lives. */
const toLatin1 = (code) =>
  code.replaceAll(/[^\0-\xff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

for (const { fileName, isEntry, exports, code } of output) {
  if (code !== undefined) writeFileSync(join(to, fileName), toLatin1(code));
  if (!isEntry) continue;
  const up = "../".repeat(fileName.split("/").length);
  writeFileSync(
    join(to, fileName.replace(/cjs$/, "js")),
    [
      `import "${up}bin/code-cache.js";`,
      `import entry from "./${basename(fileName)}";`,
      ...(exports.length > 0 ? [`export const { ${exports.join(", ")} } = entry;`] : []),
      "",
    ].join("\n"),
  );
}

/** Starts something as soon as it is loaded. */
const acts = /watchdog-thread|process-main|parent-watch/;

// V8 puts into the cache what has been compiled so far, and compiles a function when it is called. So the code is run
// first: every entry point is loaded, and an orchestration runs to its end in memory.
const scripts = new Map();
Module._extensions[".cjs"] = (module, file) => {
  const script = new Script(Module.wrap(readFileSync(file, "utf8")), { filename: file });
  if (!file.includes("module-context")) scripts.set(file, script);
  const run = script.runInThisContext();
  run.call(module.exports, module.exports, Module.createRequire(file), module, file, dirname(file));
};
const load = (entry) => Module.createRequire(import.meta.url)(join(to, `${entry}.cjs`));
for (const entry of entries) if (!acts.test(entry)) load(entry);
const once = load("shared/sdk/index").defineOrchestration("once", { run: async () => 0 });
const env = await load("shared/testing/index").testEnvironment({ app: { once } });
await (await env.client.start(once)).result();
await env.close();
for (const [file, script] of scripts) writeFileSync(`${file}.cache`, script.createCachedData());

/** The licences of what is inside ask to be passed on. */
const inside = new Set();
for (const chunk of output)
  for (const id of chunk.type === "chunk" ? chunk.moduleIds : []) {
    const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? [];
    if (folder) inside.add(folder);
  }
const notices = [...inside].sort().map((folder) => {
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
