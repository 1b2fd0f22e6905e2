/** Session types whose states live in programs of other languages, or in what is none. */

import { call, defineSession, type HostOptions } from "holdfast";
import { z } from "zod";

const here = (name: string): URL => new URL(`./hosted/${name}`, import.meta.url);
const quickPing = { pingInterval: 100, pingTimeout: 300, maxMissed: 2, killGrace: 300 } as const;

/** Base64 outside, bytes in the host. */
const BytesIn = z.base64().transform((text) => Uint8Array.from(Buffer.from(text, "base64")));
const BytesOut = z.union([
  z.string(),
  z.instanceof(Uint8Array).transform((bytes) => Buffer.from(bytes).toString("base64")),
]);

const calls = () => ({
  where: call(),
  environment: call(),
  keep: call(),
  count: call({ input: z.number(), output: z.number() }),
  crash: call(),
  leave: call(),
  fail: call(),
  divide: call(),
  weird: call(),
  stream: call(),
  wait: call(),
  wait_async: call(),
  add_async: call(),
  next: call(),
  child: call(),
  give_up: call(),
  compute: call(),
  meet: call(),
  echo: call(),
  double: call({ input: z.number().or(z.literal("poison")), batch: { maxSize: 8, maxDelay: 50 } }),
  reverse: call({ input: BytesIn, output: BytesOut }),
  big: call(),
});

const python = (
  name: string,
  host: HostOptions = {},
  more: { env?: Record<string, string>; concurrency?: number } = {},
) =>
  defineSession(name, {
    isolation: "process",
    command: ["python3", here("counter.py")],
    host: { killGrace: 300, ...host },
    calls: calls(),
    checkpoint: true,
    snapshot: true,
    ...more,
  });

export const py = python("py");
export const pyParallel = python("py-parallel", {}, { concurrency: 2 });
export const pyHanging = python("py-hanging", quickPing);
export const pyByCalls = python("py-by-calls", { maxCalls: 3 });
export const pyByAge = python("py-by-age", { maxAge: 1_000 });
export const pyBySize = python("py-by-size", { maxRssMb: 1, pingInterval: 50 });
export const pySmall = python("py-small", { maxMessageMb: 0.1 });
export const pyEnv = python("py-env", {}, { env: { OMP_NUM_THREADS: "7", MODEL_HOME: "/models" } });

const broken = (name: string, command: [string | URL, ...(string | URL)[]]) =>
  defineSession(name, {
    isolation: "process",
    command,
    host: { killGrace: 200 },
    calls: { ask: call() },
  });

export const missing = broken("missing", ["no-such-command-anywhere", "x"]);
export const notExecutable = broken("not-executable", [here("counter.py")]);
export const endsAtOnce = broken("ends-at-once", ["/bin/sh", "-c", "echo no weights here >&2; exit 5"]);
export const chatty = broken("chatty", ["/bin/sh", "-c", "echo Loading the model; sleep 60"]);
export const newer = broken("newer", ["/bin/sh", "-c", 'echo \'{"kind":"ready","protocol":2}\'; sleep 60']);
export const withoutCalls = broken("without-calls", ["python3", here("counter.py")]);
/** Answers whatever is said in the input, as it is. */
export const loose = defineSession("loose", {
  isolation: "process",
  command: ["python3", here("loose.py")],
  host: { killGrace: 200, maxMessageMb: 0.1 },
  calls: { say: call() },
});
