/**
 * `holdfast provision`: creates streams and buckets, and adds what a newer version needs. Other processes
 * only check them.
 */
import type { Command } from "commander";
import { type Cli, type ClientOptions, clientCommand, withClient } from "../connection/client-command.ts";

export const provisionCommand = (cli: Cli): Command =>
  clientCommand(
    "provision",
    "make the streams and buckets of an installation, or add what is missing; again changes nothing",
  ).action((options: ClientOptions) =>
    withClient(cli, options, async ({ bus, names, config, out }) => {
      const { ensureTopology, installedNames, topology } = await import("../../../shared/bus/index.ts");
      const { topologyOf } = await import("../../run-service.ts");
      const wanted = topologyOf(config);
      const before = new Set<string>();
      for (const { name } of topology(names, wanted)) if (await bus.streamInfo(name)) before.add(name);
      await ensureTopology(bus, names, wanted);
      const all = topology(await installedNames(bus, names), wanted).map(({ name }) => name);
      const made = all.filter((name) => !before.has(name));
      out.data({ made, there: all.length - made.length }, () =>
        made.length === 0
          ? `everything is there: ${all.length} streams and buckets`
          : `made ${made.length} of ${all.length} streams and buckets`,
      );
      return undefined;
    }),
  );
