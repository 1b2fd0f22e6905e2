/**
 * Roles as `docker compose up` has them: permissions of each role, places without secrets, and new keys while
 * work goes on.
 */
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";
import { until } from "../../support/processes/stack.ts";
import { check, ensure } from "../check.ts";
import type { Stage } from "../stage.ts";
import { hold } from "./sessions.ts";

const roles = ["provisioner", "orchestrator", "worker", "watcher", "gateway", "client"];

export async function checkSecrets({ project, journal }: Stage): Promise<void> {
  const servers = `127.0.0.1:${project.ports.nats[0]}`;
  const refused = await connect({ servers, reconnect: false }).then(
    (connection) => connection.close().then(() => "let in"),
    (error: Error) => error.name,
  );
  check("without a key", refused, "AuthorizationError");

  const authenticator = nkeyAuthenticator(new TextEncoder().encode(await project.keyOf("worker")));
  const worker = await connect({ servers, authenticator, inboxPrefix: "_INBOX_worker" });
  const forbidden = await worker.request("orchestrations.any.terminate", "{}", { timeout: 2_000 }).then(
    () => "answered",
    (error: Error) => (error.cause instanceof Error ? error.cause : error).name,
  );
  await worker.close();
  check("a worker that ends an instance", forbidden, "PermissionViolationError");

  const secrets = await Promise.all(roles.map((role) => project.keyOf(role)));
  const containers = await project.containers();
  for (const { id, name, service } of containers) {
    const shown = `${await project.docker("inspect", id)}${await project.said(id)}`;
    ensure(`no key in the settings or the log of ${name}`, !secrets.some((key) => shown.includes(key)));
    if (!roles.includes(service)) continue;
    const files = await project.docker("exec", id, "ls", "/security");
    const own = service === "orchestrator" ? ["capability-keys", "env", "user.nk"] : ["env", "user.nk"];
    check(`what ${name} finds in /security`, files.trim().split("\n"), own);
  }
  journal.note("without a key, and as a worker that ends an instance", "refused");
  journal.note("in settings, arguments and logs of every container", "no key; each has its own file alone");
}

/** Orchestrators read the keys of capabilities so often; nothing tells when all of them have. */
const capabilityKeysReadMs = 10_000;

/** As docs/security.md has it, with a session held all the while. */
export async function changeKeys(stage: Stage): Promise<void> {
  const { project, driver, journal } = stage;
  const old = await project.keyOf("client");
  const rotate = (...more: string[]) =>
    project.compose("run", "--rm", "-T", "security", "security", "rotate", "--out", "/keys", ...more);
  const reload = () => project.compose("kill", "-s", "HUP", "nats");
  const held = await hold(stage, "fail", 15_000);
  await held.add();
  await rotate();
  await reload();
  await new Promise((resolve) => setTimeout(resolve, capabilityKeysReadMs + 1_000));
  await driver.renewKeys();
  await rotate("--finish");
  await reload();
  const servers = `127.0.0.1:${project.ports.nats[0]}`;
  const authenticator = nkeyAuthenticator(new TextEncoder().encode(old));
  await until("the old key is refused", () =>
    connect({ servers, authenticator, reconnect: false }).then(
      (connection) => connection.close().then(() => false),
      () => true,
    ),
  );
  const after = await held.add();
  ensure(
    "the session was kept, with its memory",
    after !== undefined && "count" in after && after.count === 2,
    after,
  );
  await held.end();
  await project.healthy();
  journal.note(
    "keys of every role",
    "changed without a restart; the old ones are refused, a session was kept",
  );
}
