/** `holdfast security add-workers`: a user of its own for a group of workers, with the rights to its work alone. */
import { resolve } from "node:path";
import { Fault } from "../../../shared/errors/index.ts";
import { type Cli, outputOf } from "../connection/client-command.ts";
import { readSecured, writeSecured } from "./files.ts";
import { folderOf, type User, withWorkers } from "./security-file.ts";

export interface AddWorkersOptions {
  out: string;
  activities?: string[];
  pools?: string[];
  sessionTypes?: string[];
  json?: boolean;
}

export function addWorkers(cli: Cli, group: string, options: AddWorkersOptions): void {
  const folder = resolve(options.out);
  const before = readSecured(folder);
  if (!before)
    throw new Fault("config", {
      code: "security_missing",
      message: `there are no keys in ${folder}`,
      hint: "Make them with `holdfast security init`, or name their folder with --out.",
    });
  if (before.tenants.some(({ users }) => users.some((user) => folderOf(user) === `worker-${group}`)))
    throw new Fault("config", {
      code: "security_exists",
      message: `there is a group of workers called ${group} in ${folder} already`,
      hint: "Change its keys with `holdfast security rotate`, or choose another name.",
    });
  const scope: User["scope"] = {
    group,
    activities: (options.activities ?? []).map((one) => {
      const [queue = "", name = ""] = one.split(".");
      return { queue, name };
    }),
    pools: options.pools ?? [],
    sessionTypes: options.sessionTypes ?? [],
  };
  writeSecured(folder, withWorkers(before, scope), Date.now());
  outputOf(cli, options).done(
    `the settings of these workers are in worker-${group}/env: let the server reload its configuration (nats-server --signal reload)`,
  );
}
