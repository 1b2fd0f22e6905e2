/** `holdfast doctor`: looks at everything a running installation needs and says what is missing. */
import type { Command } from "commander";
import { type Cli, type ClientOptions, clientCommand, withClient } from "./client-command.ts";
import { defaultDataDir, readDevFile } from "./dev-file.ts";
import { examine, type Finding } from "./examine.ts";
import { exitCodes } from "./exit-codes.ts";
import { table } from "./output.ts";

export const doctorCommand = (cli: Cli): Command =>
  clientCommand("doctor", "check the server, the streams and who is alive").action((options: ClientOptions) =>
    withClient(cli, options, async ({ bus, names, config, out }) => {
      const dev = readDevFile(options.dataDir ?? defaultDataDir);
      const sync = dev?.natsUrl === config.nats.url ? dev?.sync : undefined;
      const findings = await examine({ bus, names, config, sync, now: Date.now() });
      const ok = findings.every((finding) => finding.verdict !== "wrong");
      out.data({ ok, findings }, () => shown(findings));
      return ok ? exitCodes.ok : exitCodes.failed;
    }),
  );

function shown(findings: Finding[]): string {
  const lines = table(findings, [
    { title: "", value: ({ verdict }) => ({ good: "ok", note: "note", wrong: "WRONG" })[verdict] },
    { title: "WHAT", value: ({ what }) => what },
    { title: "FOUND", value: ({ found }) => found },
  ]);
  const advice = findings.flatMap(({ what, todo }) => (todo === undefined ? [] : [`${what}: ${todo}`]));
  return advice.length === 0 ? lines : `${lines}\n\n${advice.join("\n")}`;
}
