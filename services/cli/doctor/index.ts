/** `holdfast doctor`: looks at everything a running installation needs and says what is missing. */
import type { Command } from "commander";
import { defaultDataDir } from "../../../shared/runtime/index.ts";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";
import { exitCodes } from "../terminal/exit-codes.ts";
import { shownFindings } from "./report.ts";

export const doctorCommand = (cli: Cli): Command =>
  clientCommand("doctor", "check the server, the streams, who is alive and what waits").action(
    (options: ClientOptions) =>
      withClient(cli, options, async ({ bus, names, config, out }) => {
        const { examine } = await import("./examine.ts");
        const { readDevFile } = await import("../../../shared/sdk/where/index.ts");
        const dev = readDevFile(options.dataDir ?? defaultDataDir);
        const sync = dev?.natsUrl === config.nats.url ? dev?.sync : undefined;
        const findings = await examine({ bus, names, config, sync, now: Date.now });
        const ok = findings.every((finding) => finding.verdict !== "wrong");
        if (out.format === "jsonl") out.list(findings, () => "");
        else out.data({ ok, findings }, () => shownFindings(findings, out.paint));
        return ok ? exitCodes.ok : exitCodes.failed;
      }),
  );
