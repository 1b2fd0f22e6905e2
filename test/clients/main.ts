/**
 * `npm run test:clients`: what the README and docs/plain-nats.md show for Python, Go and the nats command runs, as it
 * stands there, against a real installation. Clients that cannot be had are skipped by name. `-- --record` writes
 * docs/clients-test.md.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startDev } from "../support/processes/cli.ts";
import { blockOf, commandsOf, forRun } from "./snippets.ts";
import { curl, type Found, natsCli, natsGo, natsPy, type Tool } from "./tools.ts";

const root = resolve(import.meta.dirname, "../..");

interface Row {
  client: string;
  source: string;
  result: string;
}
const rows: Row[] = [];
let failures = 0;

async function check(found: Found, source: string, body: (tool: Tool) => Promise<string>): Promise<void> {
  const row = { client: found.name, source, result: "" };
  if ("missing" in found) row.result = `skipped: ${found.missing}`;
  else {
    row.client = `${found.name} ${found.version}`;
    try {
      row.result = `passed: ${await body(found)}`;
    } catch (error) {
      failures++;
      row.result = `FAILED: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  rows.push(row);
  process.stdout.write(`${row.client}, ${row.source}: ${row.result}\n`);
}

/** Every line that a `print` shows in a comment is printed. */
const shownLines = (code: string, mark: RegExp): string[] =>
  [...code.matchAll(mark)].map(([, line = ""]) => line.trim());

/** `nats req` prints where the answer came from and then the answer itself. */
const answerIn = (printed: string): unknown => JSON.parse(/^\{.*\}$/m.exec(printed)?.[0] ?? "null");

const partOf = (answer: unknown, wanted: unknown): unknown => {
  const fields = Object.keys(Object(wanted));
  return Object.fromEntries(Object.entries(Object(answer)).filter(([name]) => fields.includes(name)));
};

async function runCommands(tool: Tool, block: string, natsUrl: string): Promise<string> {
  const commands = commandsOf(block);
  let compared = 0;
  for (const { command, prints } of commands) {
    const printed = await tool.run(`export NATS_URL=${natsUrl}; ${command}`);
    if (prints === undefined) continue;
    // The documents show the fields that matter; an answer has more.
    assert.deepEqual(partOf(answerIn(printed), prints), prints, `${command} printed ${printed}`);
    compared++;
  }
  return `${commands.length} commands, ${compared} answers as written`;
}

/** One line after the other, so that a refusal names its own; `--fail-with-body` makes a refusal a failure. */
async function runCurl(tool: Tool, block: string, gateway: string): Promise<string> {
  const lines = block.replaceAll("http://127.0.0.1:4440", gateway).split("\n");
  const settings = lines.filter((line) => /^\w+=/.test(line)).join("\n");
  const commands = lines.filter((line) => line.startsWith("curl "));
  for (const command of commands)
    await tool.run(
      `${settings}\n${command.replace("curl ", "curl --silent --show-error --fail-with-body ")}`,
    );
  return `${commands.length} commands`;
}

/** The block of a page that is all curl. */
const curlOf = (page: string): string =>
  [...readFileSync(join(root, page), "utf8").matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .map(([, code = ""]) => code)
    .find((code) => code.startsWith("curl ")) ?? "";

const dataDir = mkdtempSync(join(tmpdir(), "holdfast-clients-"));
const [python, go, cli, http] = await Promise.all([natsPy(), natsGo(), natsCli(), curl()]);
const dev = await startDev(dataDir, { args: ["--app", join(root, "examples/app.ts"), "--workers", "1"] });
try {
  const { natsUrl } = dev.ready;
  const block = (page: string, heading: string, language: string, source: string) =>
    forRun(blockOf(page, heading, language), source, natsUrl);

  await check(python, "docs/plain-nats.md", async (tool) => {
    const code = block("docs/plain-nats.md", "Python (nats-py)", "python", "py");
    const printed = await tool.run(code);
    const wanted = shownLines(code, /print\(.*\)\s+# (.*)$/gm);
    for (const line of wanted) assert.ok(printed.includes(line), `${line} is not in ${printed}`);
    return `${wanted.length} lines as written`;
  });
  await check(go, "docs/plain-nats.md", async (tool) => {
    const printed = await tool.run(block("docs/plain-nats.md", "Go (nats.go)", "go", "go"));
    const wanted = { status: "completed", output: "Hello, Ada!" };
    assert.deepEqual(partOf(answerIn(printed), wanted), wanted);
    return "the result came";
  });
  await check(cli, "docs/plain-nats.md", (tool) =>
    runCommands(tool, block("docs/plain-nats.md", "nats CLI", "sh", "cli"), natsUrl),
  );
  await check(cli, "README.md", (tool) =>
    runCommands(tool, block("README.md", "From plain NATS", "sh", "readme"), natsUrl),
  );
  const gateway = dev.ready.dashboard ?? "";
  await check(http, "docs/plain-http.md", (tool) =>
    runCurl(tool, forRun(blockOf("docs/plain-http.md", undefined, "sh"), "curl", natsUrl), gateway),
  );
  await check(http, "README.md", (tool) =>
    runCurl(tool, forRun(curlOf("README.md"), "readme-curl", natsUrl), gateway),
  );
} finally {
  dev.signal("SIGTERM");
  await dev.ended();
  rmSync(dataDir, { recursive: true, force: true });
}

if (process.argv.includes("--record")) {
  const page = `# Real clients, last run

Written by \`npm run test:clients -- --record\`: the programs and commands of [plain-nats.md](plain-nats.md) and the README, as they stand there, against \`holdfast dev\`.

- when: ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC

| client | from | result |
| --- | --- | --- |
${rows.map(({ client, source, result }) => `| ${client} | ${source} | ${result.replaceAll(/\s+/g, " ").replaceAll("|", "\\|")} |`).join("\n")}
`;
  writeFileSync(join(root, "docs/clients-test.md"), page);
}
process.exitCode = failures === 0 ? 0 : 1;
