/**
 * Every command of the documents runs as it stands there, page by page, against a real installation: a page that says
 * `holdfast dev --app …` gets that one, the others share one with what the pages talk about. What is not run here stands
 * in `elsewhere`, each with the reason.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { pagesWithCommands, type ShownCommand, shownCommands } from "../support/documents/shown-commands.ts";
import { bin, type Dev, repository, startDev } from "../support/processes/cli.ts";

/** The host in Go is built where Go is. */
const hasGo = spawnSync("go", ["version"]).error === undefined;

/** By the beginning of the line. */
const elsewhere: readonly (readonly [page: string, begins: string, reason: string])[] = [
  ["README.md", "npm ci && npm start", "test/e2e/demo.test.ts runs what it starts"],
  ["README.md", "npm ci && npm test", "this test is part of it"],
  ["README.md", "export NATS_URL=", "the address is the one of this test"],
  ["docs/deploy.md", "", "needs a container engine: npm run test:compose"],
  ["docs/tutorial.md", "", "test/e2e/new-user.test.ts goes through the page"],
  ["docs/http-api.md", "", "other hosts and a provider: test/integration/gateway-access, gateway-oidc"],
  ["docs/security.md", "nats-server ", "a server with these keys: test/integration/security/setup"],
  ["docs/security.md", "set -a; . security/provisioner/env", "test/integration/security/setup"],
  ["docs/security.md", "GATEWAY_TENANTS=", "serves: test/integration/security/tenants-gateway"],
  ["docs/upgrading.md", "HOLDFAST_GENERATION=1 holdfast orchestrator", "serves: npm run test:upgrade"],
  ["examples/classify/README.md", "npm run demo", "test/e2e/demo.test.ts runs it"],
  ["examples/classify/README.md", "npm start", "test/e2e/demo.test.ts runs what it starts"],
  [
    "examples/connection-pool/README.md",
    `npx holdfast start ask-many --input '{"questions":10,"server"`,
    "a server of the reader's own: test/e2e/examples.test.ts has one",
  ],
  [
    "examples/file-cache/README.md",
    "npx holdfast start process-file",
    "files on a server of the reader's own: test/e2e/examples.test.ts has one",
  ],
  ["examples/models/README.md", "npx tsx examples/models/make/make.ts", "46 MB from a registry, and minutes"],
  ...(hasGo ? [] : [["examples/hosts/README.md", "npx holdfast start count-in-go", "needs Go"] as const]),
];

/** What the text around a page's commands takes for granted. */
const before: Readonly<Record<string, readonly string[]>> = {
  "docs/messages.md": ["holdfast start cart --id cart-1"],
  "docs/verify.md": [
    `holdfast start measure --id order-42 --input '{"words":["hold"]}' --wait`,
    `echo '{"kind":"started","instanceId":"order-42","ends":true}' > journal.jsonl`,
    "ln -s examples/first/app.ts app.ts",
  ],
};

/** Commands that ask for confirmation on a terminal; here they run without one. */
const asks = /\bholdfast (pools (pause|forget)|sessions close)\b[^;]*/g;

/** Pages whose commands need an installation of their own, though they do not say so. */
const ownApp: Readonly<Record<string, string>> = {
  "docs/verify.md": "examples/first/app.ts",
  "examples/classify/README.md": "examples/classify/app.ts",
};

const isElsewhere = (page: string, line: string) =>
  elsewhere.some(([of, begins]) => of === page && line.startsWith(begins));

let folder: string;
const running = new Map<string, Dev>();
let shared: Dev;
let poolId: string;

/** One installation for each application. */
async function serve(app: string): Promise<Dev> {
  const known = running.get(app);
  if (known) return known;
  const cwd = mkdtempSync(join(folder, `${app.replaceAll(/\W/g, "-")}-`));
  // The files that the commands name, in a folder that may be written to.
  for (const there of ["examples", "node_modules"]) symlinkSync(join(repository, there), join(cwd, there));
  const dev = await startDev(join(cwd, ".holdfast"), { cwd, args: ["--app", app, "--workers", "1"] });
  running.set(app, dev);
  return dev;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-documents-"));
  const tools: Record<string, string> = {
    holdfast: `exec ${process.execPath} ${bin} "$@"`,
    npx: `[ "$1" = holdfast ] && shift && exec ${process.execPath} ${bin} "$@"; exit 127`,
    nats: `exec ${process.execPath} --import ${join(repository, "node_modules/tsx/dist/esm/index.mjs")} ${join(repository, "test/support/nats/nats-command.ts")} "$@"`,
    curl: `exec /usr/bin/env PATH="$REAL_PATH" curl --silent --show-error --fail-with-body "$@"`,
  };
  mkdirSync(join(folder, "bin"));
  for (const [name, body] of Object.entries(tools)) {
    writeFileSync(join(folder, "bin", name), `#!/bin/sh\n${body}\n`);
    chmodSync(join(folder, "bin", name), 0o755);
  }
  shared = await serve(join(repository, "test/apps/documents.ts"));
  const pools = JSON.parse((await shell(shared, "holdfast pools list --json")).out) as { poolId: string }[];
  poolId = pools[0]?.poolId ?? "";
});
// One beside the shared one at a time: each is half a dozen processes.
afterEach(async () => {
  for (const [app, dev] of running) if (dev !== shared) await stop(app, dev);
});
afterAll(async () => {
  for (const [app, dev] of running) await stop(app, dev);
  rmSync(folder, { recursive: true, force: true });
});

async function stop(app: string, dev: Dev): Promise<void> {
  running.delete(app);
  dev.signal("SIGTERM");
  await dev.ended();
}

async function shell(dev: Dev, script: string) {
  const { NATS_URL: _, ...env } = process.env;
  const child = spawn("bash", ["-c", script], {
    cwd: join(dev.dataDir, ".."),
    env: {
      ...env,
      PATH: `${join(folder, "bin")}:${env.PATH}`,
      REAL_PATH: env.PATH,
      NATS_URL: dev.ready.natsUrl,
      api: `${dev.ready.dashboard}/api`,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { code: null as number | null, out: "", err: "" };
  child.stdout.on("data", (chunk) => (said.out += chunk));
  child.stderr.on("data", (chunk) => (said.err += chunk));
  [said.code] = await once(child, "close");
  return said;
}

/** Ids that stand on several pages become each page's own; addresses become those of the installation. */
function asHere(line: string, page: string, dev: Dev): string {
  const own = page.replaceAll(/\W/g, "-");
  return line
    .replaceAll(/\b(order|cart|nightly|import-a)(-\d+)?\b(?=[^"]*)/g, (id) =>
      /-\d|nightly|import-a/.test(id) ? `${own}-${id}` : id,
    )
    .replaceAll(/(http:\/\/)?(127\.0\.0\.1|localhost):4440/g, dev.ready.dashboard ?? "")
    .replaceAll("classifier-0f3a…", poolId)
    .replaceAll(asks, "$& --yes");
}

/** Of the answer the fields that the document shows. */
const shownPart = (printed: string, prints: unknown): unknown => {
  const answer = JSON.parse(/^\{.*\}$/m.exec(printed)?.[0] ?? "null");
  return Object.fromEntries(Object.keys(Object(prints)).map((name) => [name, answer?.[name]]));
};

it.each(pagesWithCommands())("%s", { timeout: 180_000 }, async (page) => {
  const commands = shownCommands(page).filter(({ line }) => !isElsewhere(page, line));
  if (commands.length === 0) return;
  const made = (before[page] ?? []).map((line) => ({
    ...{ line, app: undefined, prints: undefined, beside: false },
  }));
  const settings: string[] = [];
  const inOtherTerminals: Promise<void>[] = [];
  for (const { line, app: named, prints, beside } of [...made, ...commands] satisfies ShownCommand[]) {
    const app = named ?? ownApp[page];
    const dev = app === undefined ? shared : await serve(app);
    const here = asHere(line, page, dev);
    // Variables hold for the rest of the page.
    if (/^\w+=\S+$|^\w+='[^']*'$/.test(here)) settings.push(here);
    const ended = shell(dev, [...settings, here].join("\n")).then((said) => {
      const { code, out, err } = said;
      expect({ line: here, code, err: code === 0 ? "" : `${out}${err}` }).toEqual({
        ...{ line: here, code: 0, err: "" },
      });
      return said;
    });
    if (beside) {
      inOtherTerminals.push(ended.then(() => undefined));
      continue;
    }
    const { out } = await ended;
    if (prints === undefined) continue;
    const shown = JSON.parse(asHere(JSON.stringify(prints), page, dev));
    expect(shownPart(out, shown), here).toEqual(shown);
  }
  await Promise.all(inOtherTerminals);
});

it("leaves out nothing that no page shows", () => {
  const unused = elsewhere.filter(
    ([page, begins]) => !shownCommands(page).some(({ line }) => line.startsWith(begins)),
  );
  expect(unused).toEqual([]);
});
