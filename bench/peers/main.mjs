/**
 * Holdfast beside the engines that npm and Debian bring, one after the other in one run: `npm run bench -- --peers`.
 * One JSON line per repetition and form goes to `data/results.jsonl`; then the table, and the plot for the README.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { DATA, ROOT, sleep, stopAllChildren, withTimeout } from "./lib/util.mjs";
import { plot, table } from "./report.mjs";
import { shapes } from "./shapes.mjs";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    repetitions: { type: "string", default: "3" },
    peers: { type: "string", default: "holdfast:shared,holdfast,restate,dbos,bullmq" },
    plot: { type: "string" },
  },
});
const sizes = values.quick
  ? { W1: { n: 100 }, W2: { n: 100 }, W3: { n: 200, concurrency: 64, nSerial: 10 } }
  : { W1: { n: 1000 }, W2: { n: 1000 }, W3: { n: 2000, concurrency: 64, nSerial: 100 } };
const parameters = {
  ...sizes,
  W5: { workflows: values.quick ? 5 : 20, rounds: 10 },
  W6: { steps: 80, stepMs: 20, killAt: 30 },
};
const compared = new Set(shapes.flatMap(({ forms }) => Object.values(forms)));
const results = path.join(DATA, "results.jsonl");

function install() {
  if (fs.existsSync(path.join(ROOT, "node_modules"))) return;
  console.error("installing what is compared into bench/peers/node_modules");
  const options = ["install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", options, { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error("npm install failed in bench/peers");
}

async function measure(spec, repetition, lines) {
  const [file, variant] = spec.split(":");
  const add = (line) => {
    lines.push(line);
    fs.appendFileSync(results, `${JSON.stringify(line)}\n`);
    const outcome = line.error ? `failed: ${line.error.split("\n")[0]}` : "done";
    console.error(`${line.peer} ${line.workload ?? ""} ${line.form ?? ""}: ${outcome}`);
  };
  let adapter;
  try {
    const { create } = await import(`./adapters/${file}.mjs`);
    adapter = create({ variant, small: values.quick });
    await withTimeout(adapter.start(), 120_000, `${spec} start`);
    await sleep(1000);
    const { name: peer, version, durability } = adapter;
    for (const [workload, parameter] of Object.entries(parameters)) {
      await adapter.run(workload, parameter, async (form, _where, act) => {
        if (!compared.has(form)) return;
        const line = { peer, version, durability, repetition, workload, form };
        try {
          add({ ...line, ...(await withTimeout(act(), 300_000, `${spec} ${form}`)) });
        } catch (error) {
          add({ ...line, error: String(error?.stack ?? error) });
        }
      });
    }
  } catch (error) {
    add({ peer: spec, repetition, error: String(error?.stack ?? error) });
  } finally {
    await withTimeout(adapter?.stop() ?? Promise.resolve(), 60_000, `${spec} stop`).catch(() => undefined);
    await stopAllChildren();
  }
}

for (const signal of ["SIGINT", "SIGTERM"])
  process.once(signal, () => void stopAllChildren().finally(() => process.exit(130)));
// A client library's socket that closes with its server must not end the comparison.
process.on("uncaughtException", (error) => console.error(String(error?.message ?? error)));
process.on("unhandledRejection", (error) => console.error(String(error?.message ?? error)));
fs.mkdirSync(DATA, { recursive: true });
fs.writeFileSync(results, "");
install();
const lines = [];
for (let repetition = 1; repetition <= Number(values.repetitions); repetition++)
  for (const spec of values.peers.split(",")) await measure(spec, repetition, lines);
process.stdout.write(table(lines));
if (values.plot) fs.writeFileSync(values.plot, plot(lines));
process.exit(lines.some(({ error }) => error) ? 1 : 0);
