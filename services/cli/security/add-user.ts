/** `holdfast security add-workers` and `add-client`: a user of its own for a group of processes, with the rights to its work alone. */
import { resolve } from "node:path";
import { Fault } from "../../../shared/errors/index.ts";
import { type Cli, outputOf } from "../connection/client-command.ts";
import { requireSecured, writeSecured } from "./files.ts";
import { folderOf, type User, withUser } from "./security-file.ts";

interface AddOptions {
  out: string;
  json?: boolean;
}

export interface AddWorkersOptions extends AddOptions {
  activities?: string[];
  pools?: string[];
  sessionTypes?: string[];
}

export interface AddClientOptions extends AddOptions {
  orchestrations?: string[];
}

export function addWorkers(cli: Cli, group: string, options: AddWorkersOptions): void {
  addUser(cli, options, "worker", {
    group,
    activities: (options.activities ?? []).map((one) => {
      const [queue = "", name = ""] = one.split(".");
      return { queue, name };
    }),
    pools: options.pools ?? [],
    sessionTypes: options.sessionTypes ?? [],
  });
}

export function addClient(cli: Cli, group: string, options: AddClientOptions): void {
  addUser(cli, options, "client", { group, orchestrations: options.orchestrations ?? [] });
}

function addUser(cli: Cli, options: AddOptions, role: User["role"], scope: User["scope"]): void {
  const folder = resolve(options.out);
  const before = requireSecured(folder);
  const name = `${role}-${scope.group}`;
  if (before.tenants.some(({ users }) => users.some((user) => folderOf(user) === name)))
    throw new Fault("config", {
      code: "security_exists",
      message: `there is a user ${name} in ${folder} already`,
      hint: "Change its keys with `holdfast security rotate`, or choose another name.",
    });
  writeSecured(folder, withUser(before, role, scope), Date.now());
  outputOf(cli, options).done(
    `the settings of this user are in ${name}/env: let the server reload its configuration (nats-server --signal reload)`,
  );
}
