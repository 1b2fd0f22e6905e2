/** `holdfast security`: creates and changes the keys and permissions of an installation. */
import { resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import type { RoleName } from "../../../shared/security/index.ts";
import { type Cli, outputOf, withFormat } from "../connection/client-command.ts";
import type { AddClientOptions, AddWorkersOptions } from "./add-user.ts";
import type { Secured } from "./security-file.ts";

interface InitOptions {
  out: string;
  mode: Secured["mode"];
  tenant: string[];
  prefix: string;
  path?: string;
  port: number;
  storeDir: string;
  maxStore: number;
  maxStreams: number;
  maxConnections: number;
  activities?: string[];
  pools?: string[];
  sessionTypes?: string[];
  orchestrations?: string[];
  ownHistories?: boolean;
  tlsCert?: string;
  tlsKey?: string;
  tlsCa?: string;
  tlsVerify?: boolean;
  tlsClientCert?: string;
  tlsClientKey?: string;
  ifMissing?: boolean;
  json?: boolean;
}

/** Repeated here because building the tree of commands must not load the engine. */
const roleNames: readonly RoleName[] = [
  "provisioner",
  "orchestrator",
  "worker",
  "watcher",
  "gateway",
  "client",
];
const tokenPattern = /^[A-Za-z0-9_-]{1,128}$/;

const token = (value: string): string => {
  if (tokenPattern.test(value)) return value;
  throw new InvalidArgumentError("letters, digits, _ and - only");
};
const several = (value: string, before: string[] = []): string[] => [...before, token(value)];
const number = (value: string): number => {
  const parsed = Number(value);
  if (Number.isInteger(parsed)) return parsed;
  throw new InvalidArgumentError("a whole number");
};
const task = (value: string, before: string[] = []): string[] => {
  if (/^[\w-]+\.[\w-]+$/.test(value)) return [...before, value];
  throw new InvalidArgumentError("<queue>.<activity>");
};

export function securityCommand(cli: Cli): Command {
  const out = () => new Option("--out <folder>", "where everything is written").default("security");
  const ofTenant = () =>
    new Option("--tenant <name>", "only in this tenant, else in every one; again for each").argParser(
      several,
    );
  const init = withFormat(new Command("init"))
    .description("make keys, users and a nats-server configuration, with a user for each role")
    .addOption(out())
    .addOption(new Option("--mode <mode>", "how users log in").choices(["nkey", "jwt"]).default("nkey"))
    .option("--tenant <name>", "a tenant with an account of its own; again for each", several, [])
    .option("--prefix <prefix>", "HOLDFAST_PREFIX of the installation", token, "")
    .option("--path <folder>", "where each process finds its folder, for containers")
    .option("--port <port>", "port of the server", number, 4222)
    .option("--store-dir <folder>", "where the server keeps its data", "nats-data")
    .option("--max-store <bytes>", "of each tenant: bytes on disk", number, -1)
    .option("--max-streams <n>", "of each tenant: streams", number, -1)
    .option("--max-connections <n>", "of each tenant: connections", number, -1)
    .option("--activities <queue.name>", "workers run only this; again for each", task)
    .option("--pools <pool>", "workers take calls of only this pool; again for each", several)
    .option("--session-types <type>", "workers open only sessions of this type; again for each", several)
    .option("--orchestrations <name>", "clients start only this; again for each", several)
    .option("--own-histories", "each history in a stream of its own, with the right to make streams")
    .option("--tls-cert <file>", "certificate of the server")
    .option("--tls-key <file>", "its key")
    .option(
      "--tls-ca <file>",
      "the authority that services trust, and of their certificates with --tls-verify",
    )
    .option("--tls-verify", "the server asks for a certificate (mutual TLS)")
    .option("--tls-client-cert <file>", "the certificate that processes show the server")
    .option("--tls-client-key <file>", "its key")
    .option("--if-missing", "if keys exist already, keep them and only write the rights of this version")
    .action((options: InitOptions) => runInit(cli, options));
  const rotate = withFormat(new Command("rotate"))
    .description("make new keys beside the old ones; with --finish the old ones go")
    .addOption(out())
    .addOption(new Option("--role <role...>", "only these").choices(roleNames))
    .option("--finish", "second step: only the new keys are left")
    .action((options: { out: string; role?: RoleName[]; finish?: boolean }) => runRotate(cli, options));
  const addWorkersCommand = withFormat(new Command("add-workers"))
    .description(
      "make a user of its own for a group of workers, which can neither read nor do the work of other groups",
    )
    .argument("<group>", "name of the group", token)
    .addOption(out())
    .addOption(ofTenant())
    .option("--activities <queue.name>", "an activity they run; again for each", task)
    .option("--pools <pool>", "a pool whose calls they take; again for each", several)
    .option("--session-types <type>", "a type of sessions they open; again for each", several)
    .action(async (group: string, options: AddWorkersOptions) => {
      const { addWorkers } = await import("./add-user.ts");
      addWorkers(cli, group, options);
    });
  const addClientCommand = withFormat(new Command("add-client"))
    .description("make a user of its own for a set of clients, which cannot read answers to other clients")
    .argument("<group>", "name of the set", token)
    .addOption(out())
    .addOption(ofTenant())
    .option("--orchestrations <name>", "an orchestration they start; again for each", several)
    .option("--session-types <type>", "a type whose sessions they call by key; again for each", several)
    .action(async (group: string, options: AddClientOptions) => {
      const { addClient } = await import("./add-user.ts");
      addClient(cli, group, options);
    });
  return new Command("security")
    .description("keys and rights of processes on the NATS server")
    .addCommand(init)
    .addCommand(addWorkersCommand)
    .addCommand(addClientCommand)
    .addCommand(rotate);
}

async function runInit(cli: Cli, options: InitOptions): Promise<void> {
  const { Fault } = await import("../../../shared/errors/index.ts");
  const { readSecured, writeSecured } = await import("./files.ts");
  const { newSecurityFile } = await import("./security-file.ts");
  const output = outputOf(cli, options);
  const folder = resolve(options.out);
  const before = readSecured(folder);
  if (before) {
    if (options.ifMissing) {
      writeSecured(folder, before, Date.now());
      return output.done(`keys are in ${folder} already; the rights of this version are written`);
    }
    throw new Fault("config", {
      code: "security_exists",
      message: `there are keys in ${folder} already`,
      hint: "Change them with `holdfast security rotate`, or name another folder with --out.",
    });
  }
  if ((options.tlsCert === undefined) !== (options.tlsKey === undefined))
    throw new Fault("config", {
      code: "invalid_option",
      message: "--tls-cert and --tls-key belong together: only one of them is given",
    });
  const { tlsCert, tlsKey, tlsCa, tlsVerify = false, tlsClientCert, tlsClientKey } = options;
  if ((tlsClientCert === undefined) !== (tlsClientKey === undefined))
    throw new Fault("config", {
      code: "invalid_option",
      message: "--tls-client-cert and --tls-client-key belong together: only one of them is given",
    });
  const secured = newSecurityFile({
    mode: options.mode,
    port: options.port,
    storeDir: options.storeDir,
    prefix: options.prefix,
    ...(options.path === undefined ? {} : { path: options.path }),
    ...(tlsCert && tlsKey
      ? {
          tls: {
            cert: tlsCert,
            key: tlsKey,
            verify: tlsVerify,
            ...(tlsCa === undefined ? {} : { ca: tlsCa }),
            ...(tlsClientCert && tlsClientKey ? { client: { cert: tlsClientCert, key: tlsClientKey } } : {}),
          },
        }
      : {}),
    tenants: options.tenant.length > 0 ? options.tenant : [""],
    limits: {
      storeBytes: options.maxStore,
      streams: options.maxStreams,
      consumers: -1,
      connections: options.maxConnections,
    },
    scope: {
      ...(options.activities && {
        activities: options.activities.map((one) => {
          const [queue = "", name = ""] = one.split(".");
          return { queue, name };
        }),
      }),
      ...(options.pools && { pools: options.pools }),
      ...(options.sessionTypes && { sessionTypes: options.sessionTypes }),
      ...(options.orchestrations && { orchestrations: options.orchestrations }),
      ...(options.ownHistories && { ownHistories: true }),
    },
  });
  const files = writeSecured(folder, secured, Date.now());
  output.data({ folder, files }, () =>
    [`wrote to ${folder}:`, ...files.map((file) => `  ${file}`), "Next: docs/security.md"].join("\n"),
  );
}

/**
 * Makes the keys of one installation, once, and keeps them in the folder. Returns what a server's configuration says of
 * its users: each role has its permissions, and a client without a key has all of them.
 */
export async function keepKeys(folder: string, prefix: string): Promise<string> {
  const { noLimits } = await import("../../../shared/security/index.ts");
  const { nkeyConfig, readSecured, writeSecured } = await import("./files.ts");
  const { newSecurityFile } = await import("./security-file.ts");
  const server = { mode: "nkey" as const, port: 0, storeDir: "" };
  const kept =
    readSecured(folder) ?? newSecurityFile({ ...server, prefix, tenants: [""], limits: noLimits, scope: {} });
  const secured = { ...kept, tenants: kept.tenants.map((tenant) => ({ ...tenant, prefix })) };
  writeSecured(folder, secured, Date.now());
  return nkeyConfig(secured, { everybody: "everybody" });
}

async function runRotate(
  cli: Cli,
  options: { out: string; role?: RoleName[]; finish?: boolean; json?: boolean },
): Promise<void> {
  const { requireSecured, writeSecured } = await import("./files.ts");
  const { rotated } = await import("./security-file.ts");
  const folder = resolve(options.out);
  const before = requireSecured(folder);
  const step = options.finish ? "finish" : "begin";
  writeSecured(folder, rotated(before, step, options.role ?? roleNames), Date.now());
  outputOf(cli, options).done(
    options.finish
      ? "only the new keys are left: let the server reload its configuration (nats-server --signal reload)"
      : "new keys are beside the old ones: let the server reload its configuration, then run it again with --finish",
  );
}
