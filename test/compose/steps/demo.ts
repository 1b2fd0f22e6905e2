/** `docker compose up` as it is: the examples, with a real model, on read-only hardened containers. */
import { z } from "zod";
import { loadMails } from "../../../examples/mails/mails.ts";
import { check, ensure } from "../check.ts";
import type { Journal } from "../journal.ts";
import type { Project } from "../project.ts";
import { newId, type Stage } from "../stage.ts";

const mailCount = 200;
const leastAccuracy = 0.93;
const Sorted = z.looseObject({ labels: z.array(z.looseObject({ label: z.string() })), ms: z.number() });

export async function runDemo({ project, driver, journal }: Stage): Promise<void> {
  const counts = new Map<string, number>();
  for (const { service } of await project.containers()) counts.set(service, (counts.get(service) ?? 0) + 1);
  check("containers", Object.fromEntries([...counts].sort()), {
    gateway: 1,
    nats: 1,
    orchestrator: 2,
    provision: 1,
    security: 1,
    watcher: 2,
    worker: 2,
  });

  const hello = newId("hello");
  const since = performance.now();
  await driver.start(hello, "hello", { name: "compose" });
  check("hello", (await driver.result(hello)).output, "Hello, compose!");
  journal.note("first result", `${Math.round(performance.now() - since)} ms after its start`);

  const signalled = newId("signalled");
  await driver.start(signalled, "wait-for-signal", null);
  check("status", (await driver.status(signalled))?.ok, true);
  await driver.signal(signalled, "go", { deep: [1, "ü"] }, `${signalled}-go`);
  check("signal", (await driver.result(signalled)).output, { deep: [1, "ü"] });

  // The model never saw these.
  const mails = loadMails().slice(0, mailCount);
  const sorted = newId("sorted");
  await driver.start(sorted, "classify-documents", { documents: mails.map(({ text }) => text) });
  const answer = await driver.result(sorted, 120_000);
  const { labels, ms } = Sorted.parse(answer.output);
  const right = mails.filter(({ label }, index) => label === labels[index]?.label).length;
  ensure("a real model tells spam from ham", right / mails.length >= leastAccuracy, right);
  journal.note("mails labelled by a real model in one session", mails.length);
  journal.note("of them rightly", right);
  journal.note("calls of that session", `${Math.round((1000 * mails.length) / ms)} a second`);

  await openTheLink(project, journal);
}

/** The link in the gateway's file, as a user would click it; the log has the address without the token. */
async function openTheLink(project: Project, journal: Journal): Promise<void> {
  const [gateway] = await project.containers("gateway");
  const written = await project.docker("exec", gateway?.id ?? "", "cat", "/tmp/login-link");
  const link = new URL(written.trim());
  const token = link.hash.slice("#token=".length);
  ensure("no token is in the log", !(await project.said(gateway?.id ?? "")).includes(token), "a token");
  check("the address in the link", link.origin, `http://localhost:${project.ports.gateway}`);
  const page = await fetch(link);
  ensure("the dashboard answers", page.ok, page.status);
  const headers = { authorization: `Bearer ${token}` };
  const who = await fetch(new URL("/api/whoami", link), { headers });
  ensure("its token is good", who.ok, who.status);
  journal.note("the link in the gateway's file", "opens the dashboard, its token is good");
}

const Inspected = z.array(
  z.looseObject({
    Config: z.looseObject({ User: z.string() }),
    HostConfig: z.looseObject({
      ReadonlyRootfs: z.boolean(),
      CapDrop: z.array(z.string()),
      SecurityOpt: z.array(z.string()),
      Init: z.boolean(),
    }),
  }),
);

export async function checkHardening({ project, journal }: Stage): Promise<void> {
  const containers = await project.containers();
  const inspected = Inspected.parse(
    JSON.parse(await project.docker("inspect", ...containers.map(({ id }) => id))),
  );
  for (const [index, { Config, HostConfig }] of inspected.entries()) {
    const { service = "", name = "" } = containers[index] ?? {};
    const { ReadonlyRootfs, CapDrop, SecurityOpt, Init } = HostConfig;
    check(
      `${name}`,
      [ReadonlyRootfs, CapDrop, SecurityOpt, Init],
      [true, ["ALL"], ["no-new-privileges:true"], true],
    );
    if (service !== "nats") check(`${name} runs as`, Config.User, "10001:10001");
  }
  const [worker] = containers.filter(({ service }) => service === "worker");
  const script =
    'try { require("fs").writeFileSync("/x", ""); console.log("written") } catch (error) { console.log(error.code) }';
  const written = await project.docker("exec", worker?.id ?? "", "node", "-e", script);
  check("writing into the root", written.trim(), "EROFS");
  journal.note("containers", `${containers.length}, all read-only, without capabilities, with init`);
}

/** As a user would meet it: a line in `.env` that is wrong, and a container that does not start. */
export async function refuseSettings({ project, journal }: Stage): Promise<void> {
  const attempts: { env: string[]; says: RegExp }[] = [
    { env: ["WORKER_MAX_SESION=4"], says: /unknown setting WORKER_MAX_SESION/ },
    { env: ["NATS_REPLICA=3"], says: /NATS_REPLICA \(NATS_REPLICAS\?\)/ },
    { env: ["DEPLOY_WORKER=4"], says: /DEPLOY_WORKER \(DEPLOY_WORKERS\?\)/ },
    { env: ["WORKER_LEASE_TTL=soon"], says: /WORKER_LEASE_TTL="soon" must be a duration/ },
    {
      env: ["WORKER_ACTIVITY_SLOTS=0", "WORKER_MAX_SESSIONS=0"],
      says: /WORKER_ACTIVITY_SLOTS and WORKER_MAX_SESSIONS are both 0/,
    },
    {
      env: ["WORKER_DRAIN_TIMEOUT=45s"],
      says: /WORKER_DRAIN_TIMEOUT and WORKER_STOP_GRACE contradict/,
    },
  ];
  for (const { env, says } of attempts) {
    const variables = env.flatMap((variable) => ["-e", variable]);
    const { code, stderr } = await project.attempt("run", "--rm", "--no-deps", "-T", ...variables, "worker");
    check(`exit code with ${env.join(" ")}`, code, 2);
    ensure(`the complaint about ${env.join(" ")}`, says.test(stderr), stderr);
  }
  const peer = await project.attempt("--profile", "cluster", "run", "--rm", "--no-deps", "-T", "nats-2");
  ensure(
    "the profile cluster is refused without NATS_REPLICAS=3",
    peer.code !== 0 && peer.stderr.includes("NATS_REPLICAS must be 3 with the profile cluster"),
    peer,
  );
  journal.note(
    "refused by name",
    [...attempts.map(({ env }) => `\`${env[0]}\``), "the profile `cluster` without `NATS_REPLICAS=3`"].join(
      ", ",
    ),
  );
}
