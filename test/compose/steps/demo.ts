/** `docker compose up` as it is: the examples, with a real model, on read-only hardened containers. */
import { z } from "zod";
import { check, ensure } from "../check.ts";
import { newId, type Stage } from "../stage.ts";

export async function runDemo({ project, driver, journal }: Stage): Promise<void> {
  const counts = new Map<string, number>();
  for (const { service } of await project.containers()) counts.set(service, (counts.get(service) ?? 0) + 1);
  check("containers", Object.fromEntries([...counts].sort()), {
    gateway: 1,
    nats: 1,
    orchestrator: 2,
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
  check("status", (await driver.status(signalled)).ok, true);
  await driver.signal(signalled, "go", { deep: [1, "ü"] }, `${signalled}-go`);
  check("signal", (await driver.result(signalled)).output, { deep: [1, "ü"] });

  const sorted = newId("sorted");
  await driver.start(sorted, "classify-documents", {
    documents: ["You have WON, click here!!!", "See you at ten."],
  });
  const answer = await driver.result(sorted, 120_000);
  const { labels } = z.object({ labels: z.array(z.object({ label: z.string() })) }).parse(answer.output);
  check(
    "labels of a real model",
    labels.map(({ label }) => label),
    ["spam", "ham"],
  );

  const page = await fetch(`http://127.0.0.1:${project.ports.gateway}/`);
  ensure("the dashboard answers", page.ok, page.status);
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

/** A container is asked by its own health check, and the answer is the service's. */
export async function refuseSettings({ project, journal }: Stage): Promise<void> {
  const attempts: { env: string[]; says: RegExp }[] = [
    { env: ["WORKER_MAX_SESION=4"], says: /unknown setting WORKER_MAX_SESION/ },
    { env: ["NATS_REPLICA=3", "NATS_REPLICAS="], says: /NATS_REPLICA \(NATS_REPLICAS\?\)/ },
    { env: ["WORKER_LEASE_TTL=soon"], says: /WORKER_LEASE_TTL="soon" must be a duration/ },
    {
      env: ["WORKER_ACTIVITY_SLOTS=0", "WORKER_MAX_SESSIONS=0"],
      says: /WORKER_ACTIVITY_SLOTS and WORKER_MAX_SESSIONS are both 0/,
    },
  ];
  for (const { env, says } of attempts) {
    const variables = env.flatMap((variable) => ["-e", variable]);
    const { code, stderr } = await project.attempt("run", "--rm", "--no-deps", "-T", ...variables, "worker");
    check(`exit code with ${env.join(" ")}`, code, 2);
    ensure(`the complaint about ${env.join(" ")}`, says.test(stderr), stderr);
  }
  journal.note("refused by name", attempts.map(({ env }) => `\`${env[0]}\``).join(", "));
}
