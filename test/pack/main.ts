/**
 * The package as a user gets it: packed, installed into an empty folder, type-checked with both module resolutions,
 * loaded, linted; then the way of a new user with it (new-user.ts). `npm run test:pack`; needs a registry.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { newUserPath } from "./new-user.ts";

const root = resolve(import.meta.dirname, "../..");
const mostBytes = 2 * 1024 * 1024;

const app = `import { call, defineActivity, defineOrchestration, defineQuery, defineSession, defineSignal, defineUpdate } from "holdfast";
import { z } from "zod";
export const progress = defineQuery("progress", { output: z.number() });
export const rename = defineUpdate("rename", { input: z.string(), output: z.string() });
export const approved = defineSignal("approved", { payload: z.object({ by: z.string() }) });
export const greet = defineActivity("greet", { input: z.string(), run: async (_ctx, name) => \`hello \${name}\` });
export const counter = defineSession("counter", {
  config: z.object({ from: z.number() }),
  init: async (_ctx, { from }) => ({ n: from }),
  calls: { add: call({ input: z.number(), output: z.number(), run: async (state, by) => (state.n += by) }) },
});
export const hello = defineOrchestration("hello", {
  input: z.object({ name: z.string() }),
  async run(ctx, { name }) {
    await using session = await ctx.openSession(counter, { config: { from: 1 } });
    const { by } = await ctx.waitForSignal(approved);
    return [await ctx.run(greet, name), by, await session.add(2)];
  },
});
`;
const client = `import { connect, type InstanceHandle, type UpdateHandle } from "holdfast/client";
import { approved, hello, rename } from "./app.ts";
export async function go(url: string): Promise<unknown> {
  const client = await connect({ url });
  const handle: InstanceHandle<unknown> = await client.start(hello, { name: "x" });
  await handle.signal(approved, { by: "ann" });
  await client.update(handle.instanceId, rename, "y");
  return handle.result();
}
`;

const folder = mkdtempSync(join(tmpdir(), "holdfast-pack-"));
const run = (command: string, args: string[], cwd = folder): string => {
  process.stdout.write(`${command} ${args.join(" ")}\n`);
  return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
};

try {
  const packed = run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder], root);
  const tarball = join(folder, packed.trim().split("\n").at(-1) ?? "");
  const { size } = statSync(tarball);
  if (size > mostBytes) throw new Error(`the tarball has ${size} bytes, at most ${mostBytes} are allowed`);
  const user = join(folder, "user");
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), JSON.stringify({ name: "user", type: "module", private: true }));
  writeFileSync(join(user, "app.ts"), app);
  writeFileSync(join(user, "client.ts"), client);
  run(
    "npm",
    ["install", "--prefer-offline", "--no-audit", "--no-fund", tarball, "zod", "@types/node@20"],
    user,
  );
  for (const [moduleResolution, module] of [
    ["nodenext", "nodenext"],
    ["bundler", "esnext"],
  ]) {
    const compilerOptions = {
      // Declarations too: a user's library must be able to name the types of what it exports.
      ...{ strict: true, noEmit: true, declaration: true, allowImportingTsExtensions: true, types: ["node"] },
      ...{ target: "es2022", lib: ["esnext"], module, moduleResolution },
    };
    const config = `tsconfig.${moduleResolution}.json`;
    writeFileSync(join(user, config), JSON.stringify({ compilerOptions, files: ["app.ts", "client.ts"] }));
    run(join(root, "node_modules/.bin/tsc"), ["-p", config], user);
  }
  run(
    process.execPath,
    ["--input-type=module", "-e", 'await import("holdfast/client"); await import("holdfast");'],
    user,
  );
  run(join(user, "node_modules/.bin/holdfast"), ["--version"], user);
  run("npx", ["--yes", "publint@0.3", "--strict", tarball], user);
  const programs = ["--exclude-entrypoints", "./python/holdfast_host.py"];
  run("npx", ["--yes", "@arethetypeswrong/cli@0.18", tarball, "--profile", "esm-only", ...programs], user);
  await newUserPath({
    ...{ folder, installed: user, version: `file:${tarball}` },
    install: (shop) => run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund"], shop),
  });
  process.stdout.write(`good: ${size} bytes\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
