/**
 * `npm run test:nemesis -- --minutes 10 [--servers 3] [--seed N] [--instances 300] [--record]`: what the nemesis did, what
 * the users did, and what `holdfast verify` says of it. Ends with 1 where something is wrong. `--record` writes the result
 * into docs/proof.md. `--only kill,pause`: no other blows.
 */
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { recordProof } from "../support/documents/record-proof.ts";
import { type NemesisResult, runNemesis } from "./nemesis.ts";

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "10" },
      servers: { type: "string", default: "1" },
      seed: { type: "string" },
      instances: { type: "string", default: "300" },
      only: { type: "string" },
      record: { type: "boolean", default: false },
    },
  });
  const servers = values.servers === "3" ? 3 : 1;
  const minutes = Number(values.minutes);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1e6));
  const say = (line: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`);
  say(`seed ${seed}, ${minutes} minutes on ${servers === 1 ? "one server" : "three servers"}`);
  const result = await runNemesis({
    seed,
    seconds: minutes * 60,
    instances: Number(values.instances),
    servers,
    say,
    ...(values.only !== undefined && { kinds: values.only.split(",") }),
  });
  const never =
    minutes < 3 || values.only !== undefined
      ? []
      : [...result.branches].filter(([, n]) => n === 0).map(([branch]) => branch);
  for (const line of result.wrong) say(`WRONG ${line}`);
  for (const branch of never) say(`NEVER ${branch}`);
  const lines = written(result, { seed, minutes, servers });
  console.log(lines);
  if (values.record) await recordProof(`nemesis-${servers}`, lines);
  return result.wrong.length + never.length === 0 ? 0 : 1;
}

function written(result: NemesisResult, run: { seed: number; minutes: number; servers: number }): string {
  const { blows, instances, branches, report, wrong } = result;
  const list = (map: Iterable<[string, number]>) => [...map].map(([what, n]) => `${n} × ${what}`).join(", ");
  const spreads = Object.entries(report.spreads).map(
    ([what, { count, p50, p99, max }]) => `| ${what} | ${count} | ${p50} ms | ${p99} ms | ${max} ms |`,
  );
  return [
    `${run.minutes} minutes, ${run.servers === 1 ? "one NATS server" : "three NATS servers"}, seed ${run.seed}, ${cpus().length} cores: **${wrong.length} violations**.`,
    "",
    `- Blows: ${list(blows)}.`,
    `- Instances: ${list(instances)}; read by the checker: ${Object.entries(report.read)
      .map(([what, n]) => `${what} ${n}`)
      .join(", ")}.`,
    `- Rare branches reached: ${list(branches)}.`,
    ...wrong.map((line) => `- Wrong: ${line}`),
    "",
    "| measured by the checker | times | p50 | p99 | most |",
    "|---|---|---|---|---|",
    ...spreads,
  ].join("\n");
}

// A socket of a killed server's client may stand for long: nothing that is left matters.
process.exit(await main());
