/** `holdfast security add-workers` and `add-client`: a user of its own for a group of processes, with the rights to its work alone. */
import { join, resolve } from "node:path";
import { Fault } from "../../../shared/errors/index.ts";
import { type Cli, outputOf } from "../connection/client-command.ts";
import { requireSecured, writeSecured } from "./files.ts";
import { folderOf, type User, withUser } from "./security-file.ts";

interface AddOptions {
  out: string;
  /** Absent: every tenant gets a user of this name, each with a key of its own. */
  tenant?: string[];
  json?: boolean;
}

export interface AddWorkersOptions extends AddOptions {
  activities?: string[];
  pools?: string[];
  sessionTypes?: string[];
}

export interface AddClientOptions extends AddOptions {
  orchestrations?: string[];
  sessionTypes?: string[];
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
  const { orchestrations = [], sessionTypes = [] } = options;
  addUser(cli, options, "client", { group, orchestrations, sessionTypes });
}

function addUser(cli: Cli, options: AddOptions, role: User["role"], scope: User["scope"]): void {
  const folder = resolve(options.out);
  const before = requireSecured(folder);
  const all = before.tenants.map((tenant) => tenant.name);
  const { tenant: tenants = all } = options;
  for (const tenant of tenants)
    if (!all.includes(tenant))
      throw new Fault("config", {
        code: "invalid_option",
        message: `there is no tenant ${tenant} in ${folder}`,
        hint: `There are: ${all.filter((one) => one !== "").join(", ") || "none with a name"}.`,
      });
  const name = `${role}-${scope.group}`;
  const taken = before.tenants.find(
    (tenant) => tenants.includes(tenant.name) && tenant.users.some((user) => folderOf(user) === name),
  );
  if (taken)
    throw new Fault("config", {
      code: "security_exists",
      message: `there is a user ${join(taken.name, name)} in ${folder} already`,
      hint: "Change its keys with `holdfast security rotate`, or choose another name.",
    });
  writeSecured(folder, withUser(before, role, scope, tenants), Date.now());
  const places = tenants.map((tenant) => join(tenant, name, "env")).join(", ");
  outputOf(cli, options).done(
    `the settings of this user are in ${places}: let the server reload its configuration (nats-server --signal reload)`,
  );
}
